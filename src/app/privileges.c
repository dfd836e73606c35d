/* From root to a user: groups first, as only root may set them, then the user; then it is tried
 * whether there is a way back. The capabilities of a process that was started with some (to listen
 * below port 1024) go too. */
#include "app/privileges.h"

#include "base/log.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct err *find_user(const char *name, struct passwd *out_user)
{
    const struct passwd *user;

    errno = 0;
    user = getpwnam(name);
    if (user == NULL)
        return ERR(ERR_UNKNOWN, "User: '%s': %s", name,
                   errno == 0 ? "there is no such user" : strerror(errno));
    if (user->pw_uid == 0)
        return ERR(ERR_UNKNOWN, "User: '%s' is root: name an ordinary user", name);
    *out_user = *user;
    return NULL;
}

static bool is_root_again(void)
{
    return setresuid(0, 0, 0) == 0 || seteuid(0) == 0 || setegid(0) == 0;
}

/* The kernel forgets at a change of user whether the process may dump core, or be traced. */
static struct err *become(const struct passwd *user, const char *name)
{
    int dumpable = prctl(PR_GET_DUMPABLE);
    const char *step = NULL;

    if (initgroups(name, user->pw_gid) != 0)
        step = "setting its groups";
    else if (setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0)
        step = "setting its group";
    else if (setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0)
        step = "setting its id";
    else if (prctl(PR_SET_DUMPABLE, dumpable) != 0)
        step = "forbidding core dumps";
    if (step != NULL)
        return ERR(ERR_UNKNOWN, "User: cannot become '%s': %s: %s", name, step, strerror(errno));
    if (is_root_again())
        return ERR(ERR_UNKNOWN, "User: the process could become root again");
    log_info("privileges", "running as user '%s', uid %u, gid %u", name, (unsigned)user->pw_uid,
             (unsigned)user->pw_gid);
    return NULL;
}

/* Of libcap's functions these two calls are all that is needed. */
static bool clear_capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct now[_LINUX_CAPABILITY_U32S_3] = {{0}};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};

    if (syscall(SYS_capget, &header, now) != 0)
        return false;
    /* What has none needs no leave to set them, which a sandbox may not give. */
    return memcmp(now, none, sizeof(now)) == 0 || syscall(SYS_capset, &header, none) == 0;
}

static struct err *renounce(void)
{
    if (!clear_capabilities())
        return ERR(ERR_UNKNOWN, "cannot give up capabilities: %s", strerror(errno));
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return ERR(ERR_UNKNOWN, "cannot renounce new privileges: %s", strerror(errno));
    return NULL;
}

struct err *privileges_check(const char *user)
{
    struct passwd found;

    return user == NULL ? NULL : find_user(user, &found);
}

struct err *privileges_drop(const char *user)
{
    bool is_root = geteuid() == 0;
    struct passwd found;

    if (user == NULL && is_root) {
        log_warn("privileges", "running as root: name an ordinary user with the member User");
        return NULL;
    }
    if (user != NULL) {
        TRY(find_user(user, &found));
        if (is_root)
            TRY(become(&found, user));
        else if (geteuid() != found.pw_uid)
            return ERR(ERR_UNKNOWN, "User: only root can become '%s', and this is uid %u", user,
                       (unsigned)geteuid());
    }
    return renounce();
}
