"""Speculation must not change what is written: the same tokens when greedy, the same distribution when sampling."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from scipy.stats import chi2_contingency

from tests.conftest import EAGLE3, P_EAGLE, PLAIN

PROMPTS = [
    "Write a Python function that reverses a string.",
    "What is the capital of France, and what is it known for?",
    "Explain photosynthesis to a child.",
    "Solve: a train travels 120 km in 2 hours. What is its speed?",
    "List five fruits.",
    "Write a short poem about the sea.",
    "What is 17 + 25?",
    "Summarize the story of Romeo and Juliet in two sentences.",
    "Write a SQL query that counts the rows of a table.",
    "How do I boil an egg?",
    "Translate 'good morning' into Spanish.",
    "Give me a JSON object with a name and an age.",
    "What causes rain?",
    "Write a haiku about winter.",
    "Explain what a binary search does.",
    "Name three planets.",
    "Why is the sky blue?",
    "Write an email that asks for a day off.",
    "What is the difference between a list and a tuple in Python?",
    "Tell me a joke about computers.",
]
TOKENS = 64
CLOSE = 1e-3
DRAWS = 384


def greedy_ids(openai, endpoint):
    def ask(prompt):
        answer = openai.chat.completions.create(
            model=endpoint,
            messages=[{"role": "user", "content": prompt}],
            max_tokens=TOKENS,
            temperature=0,
            extra_body={"return_token_ids": True},
        )
        return answer.choices[0].token_ids

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(ask, PROMPTS))


@pytest.fixture(scope="module")
def plain_ids(openai):
    return greedy_ids(openai, PLAIN)


@pytest.mark.parametrize("endpoint", [P_EAGLE, EAGLE3])
def test_greedy_decoding_gives_the_targets_own_tokens(openai, plain_ids, endpoint):
    assert all(plain_ids)
    for prompt, drafted, plain in zip(PROMPTS, greedy_ids(openai, endpoint), plain_ids, strict=True):
        if drafted != plain:
            place = next(index for index, pair in enumerate(zip(drafted, plain, strict=False)) if pair[0] != pair[1])
            gap = top_two_gap(openai, prompt, place)
            assert gap < CLOSE, f"{endpoint} differs at token {place} of {prompt!r}, where the two top logits are {gap:.4f} apart"


def top_two_gap(openai, prompt, place):
    """How far apart the target's two likeliest tokens are at ``place``: log-probabilities differ as logits do."""
    answer = openai.chat.completions.create(
        model=PLAIN, messages=[{"role": "user", "content": prompt}], max_tokens=place + 1, temperature=0, logprobs=True, top_logprobs=2
    )
    first, second = answer.choices[0].logprobs.content[place].top_logprobs
    return first.logprob - second.logprob


def sampled_ids(openai, endpoint, **options):
    """Tokens 1 to 4 of many answers at temperature 0.8; those after the first come out of the rejection sampler."""

    def ask(seed):
        answer = openai.completions.create(
            model=endpoint,
            prompt="The weather today is",
            max_tokens=4,
            temperature=0.8,
            n=8,
            extra_body={"return_token_ids": True, "ignore_eos": True, **({"seed": seed} if options.get("seeded") else {})},
        )
        return [choice.token_ids for choice in answer.choices]

    with ThreadPoolExecutor(2) as pool:
        return [ids for answer in pool.map(ask, range(DRAWS // 8)) for ids in answer]


@pytest.fixture(scope="module")
def plain_samples(openai):
    return sampled_ids(openai, PLAIN)


@pytest.mark.parametrize("endpoint", [P_EAGLE, EAGLE3])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_sampling_follows_the_targets_distribution(openai, plain_samples, endpoint, position, request):
    """Chi-squared test of homogeneity at the 0.1 % level, on the tokens seen at least ten times in both samples together."""
    cache = request.config.stash.setdefault(SAMPLES, {})
    if endpoint not in cache:
        cache[endpoint] = sampled_ids(openai, endpoint)
    drafted = Counter(ids[position] for ids in cache[endpoint])
    plain = Counter(ids[position] for ids in plain_samples)
    common = [token for token, count in (drafted + plain).items() if count >= 10]
    rest = [sum(counts.values()) - sum(counts[token] for token in common) for counts in (drafted, plain)]
    table = [[*(counts[token] for token in common), left] for counts, left in zip((drafted, plain), rest, strict=True)]
    columns = [column for column in zip(*table, strict=True) if sum(column)]
    assert len(columns) > 2, "the prompt gives too few different tokens to tell distributions apart"
    assert chi2_contingency(list(zip(*columns, strict=True))).pvalue > 0.001


SAMPLES = pytest.StashKey[dict]()


def test_temperature_is_really_applied(openai):
    """A cold and a hot request in one batch: the cold one always writes the same, the hot one does not."""

    def ask(temperature):
        answer = openai.completions.create(model=P_EAGLE, prompt="My favourite word is", max_tokens=6, temperature=temperature, n=8)
        return {choice.text for choice in answer.choices}

    with ThreadPoolExecutor(2) as pool:
        cold, hot = pool.map(ask, [0.01, 1.8])
    assert len(cold) == 1
    assert len(hot) > 4


@pytest.mark.parametrize("endpoint", [P_EAGLE, PLAIN])
def test_a_seed_repeats_itself_even_when_the_prompt_is_prefilled_in_chunks(openai, endpoint):
    """vLLM's CPU build dies of this (a prompt longer than one step takes, sampled, with a seed)."""
    prompt = "A long list of numbers: " + ", ".join(str(number) for number in range(700))

    def ask():
        return openai.completions.create(model=endpoint, prompt=prompt, max_tokens=8, temperature=0.9, seed=7)

    first, second = ask(), ask()
    assert first.usage.prompt_tokens > 2048
    assert first.choices[0].text == second.choices[0].text
