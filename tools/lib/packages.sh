# shellcheck shell=bash disable=SC2034
# Sourced by tools that need them: installs the Debian packages that are missing, saying which.

# What these packages bring comes before what somebody has put elsewhere: another Python, say, which may be built to be
# half as fast.
export PATH=/usr/bin:$PATH

packages_build='build-essential meson ninja-build pkgconf libuv1-dev libcurl4-openssl-dev
libcjson-dev libc-ares-dev libpcre2-dev libssl-dev libzstd-dev node-llhttp check
ca-certificates'
packages_test='python3 curl git clang-format universal-ctags valgrind strace systemd haproxy openssl faketime
libseccomp2 mold spin etcd-server etcd-client python3-venv util-linux ccache'
# For tools/package, and for what the tests of package and deploy/ need besides.
packages_package='dpkg-dev'
packages_deploy='lintian shellcheck mmdebstrap buildah prometheus'
packages_fuzz='clang libclang-rt-14-dev mold'
# For tests/browser and tools/screenshots, beside what comes from npm.
packages_browser='chromium-headless-shell'
command -v npm >/dev/null || packages_browser+=' nodejs npm'
packages_analyze='clang clang-tidy cppcheck'
# Any will do of these, also one that is not Debian's.
PATH=$PATH:/usr/sbin command -v nginx >/dev/null || packages_test+=' nginx-light'
command -v node >/dev/null || packages_test+=' nodejs'
command -v npm >/dev/null || packages_test+=' npm'
command -v go >/dev/null || packages_test+=' golang-go'
python3 -m pip --version >/dev/null 2>&1 || packages_deploy+=' python3-pip'

# install_missing PACKAGE...
install_missing() {
    local package missing=() sudo=''
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    [ "$(id -u)" -eq 0 ] || sudo=sudo
    echo "installing: ${missing[*]}"
    $sudo apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $sudo apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >/dev/null
}

# Where tests keep what they fetch, for all checkouts. It may be deleted at any time.
export SVCD_FETCHED=${SVCD_FETCHED:-${XDG_CACHE_HOME:-~/.cache}/svcd-tests}

# The packages that drive a browser, from the npm registry.
install_browser_packages() {
    mkdir -p "$SVCD_FETCHED/browser"
    if [ ! -d "$SVCD_FETCHED/browser/node_modules/playwright-core" ] ||
        [ ! -d "$SVCD_FETCHED/browser/node_modules/axe-core" ]; then
        npm install --silent --no-audit --no-fund --no-save --prefix "$SVCD_FETCHED/browser" playwright-core axe-core
    fi
}

# Where there is ccache, which meson finds by itself, what was compiled before is not compiled again, also in another
# checkout.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1

# configure DIRECTORY MESON-OPTION...: sets up a build directory, or brings it up to date. The options
# of one that is there are changed by `meson configure`; `meson setup --reconfigure` keeps them.
configure() {
    local directory=$1
    shift
    if [ -f "$directory/build.ninja" ]; then
        meson configure "$directory" "$@" >/dev/null
        meson setup --reconfigure "$directory" >/dev/null
    else
        meson setup "$directory" "$@" >/dev/null
    fi
}

# build DIRECTORY [TARGET...]: quiet unless it fails.
build() {
    local directory=$1 output
    shift
    if ! output=$(ninja -C "$directory" "$@" 2>&1); then
        printf '%s\n' "$output" | tail -n 60 >&2
        return 1
    fi
}
