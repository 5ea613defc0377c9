#!/usr/bin/env bash
# Installs the Debian packages that are missing. usage: tools/setup.sh build|test  (test includes build)
# As root, or through sudo; says what it installs. On another system it says what is needed and goes on.
set -eu
cd "$(dirname "$0")"
purpose=${1:?usage: tools/setup.sh build|test}

needed=$(awk -v purpose="$purpose" '$1 !~ /^#/ && NF == 2 && ($2 == "build" || $2 == purpose) { print $1 }' debian-packages.txt)
if ! command -v dpkg-query >/dev/null; then
    echo "setup: this is no Debian system; these packages, under whatever name, must be there:" $needed
    exit 0
fi

missing=()
for package in $needed; do
    case $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) in
        installed) ;;
        *) missing+=("$package") ;;
    esac
done
if [ ${#missing[@]} -eq 0 ]; then
    echo "setup: all $(echo $needed | wc -w) Debian packages are there"
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup: neither root nor sudo; ask for: apt-get install ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi
echo "setup: installing with apt-get: ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
