# Debian's tcmalloc, which vLLM's CPU build wants preloaded. Without apt or root the engine is slower, not broken.
set -u
for folder in /lib /usr/lib /usr/lib64; do
  find "$folder" -name 'libtcmalloc_minimal.so.4' 2>/dev/null | grep -q . && exit 0
done
command -v apt-get >/dev/null || { echo "install tcmalloc (libtcmalloc_minimal.so.4) for a faster engine"; exit 0; }
run=""
[ "$(id -u)" = 0 ] || run="sudo -n"
echo "installing libtcmalloc-minimal4"
{ $run apt-get update && $run apt-get install --yes libtcmalloc-minimal4; } >/dev/null 2>&1 \
  || echo "could not install libtcmalloc-minimal4: the engine will be slower"
exit 0
