# shellcheck shell=bash
# Sourced by the scripts here: where the checkout is, and its own tools before the system's.
root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
export PATH="$root/.venv/bin:$PATH:/usr/sbin:/sbin"
export ANSIBLE_HOME="$root/.ansible"
# The demo and the tests run as root, perhaps through sudo: no files of root's in a user's checkout.
export PYTHONDONTWRITEBYTECODE=1
cd "$root" || exit 1

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }
die() { say "$*"; exit 1; }
