# Debian's Chromium, its driver and Prometheus, for tests. Without apt or root, the tests that need them are skipped.
set -u
missing=""
for pair in chromium:chromium chromedriver:chromium-driver prometheus:prometheus; do
  command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair##*:}"
done
[ -n "$missing" ] || exit 0
command -v apt-get >/dev/null || { echo "for all tests, install$missing"; exit 0; }
run=""
[ "$(id -u)" = 0 ] || run="sudo -n"
echo "installing$missing"
# shellcheck disable=SC2086  # the packages are several words
{ $run apt-get update && $run apt-get install --yes --no-install-recommends $missing; } >/dev/null 2>&1 \
  || echo "could not install$missing: some tests are skipped"
exit 0
