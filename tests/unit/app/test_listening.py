import pytest

from app import listening
from app.keys import Limits, create_key
from app.main import declared_endpoints


@pytest.fixture(autouse=True)
def keys(tmp_path, monkeypatch):
    monkeypatch.setenv("PEAGLE_KEYS", str(tmp_path / "keys.json"))
    monkeypatch.delenv("PEAGLE_INSECURE", raising=False)
    return tmp_path / "keys.json"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "localhost"])
def test_its_own_machine_may_always_call(address):
    listening.check(address)


@pytest.mark.parametrize("address", ["0.0.0.0", "10.0.0.4", "::", "gateway.example"])
def test_a_public_address_needs_a_key_or_the_operators_word(address, keys, monkeypatch):
    with pytest.raises(listening.OpenToOthersError, match=r"no key is configured.*peagle keys create.*insecure: true"):
        listening.check(address)
    monkeypatch.setenv("PEAGLE_INSECURE", "1")
    listening.check(address)
    monkeypatch.delenv("PEAGLE_INSECURE")
    create_key(keys, "a", "api", Limits())
    listening.check(address)


def test_insecure_stands_beside_the_endpoints():
    assert declared_endpoints({"insecure": True}) == []
    assert len(declared_endpoints({"insecure": "true", "endpoints": [{"model": "gpt-oss-20b"}]})) == 1
