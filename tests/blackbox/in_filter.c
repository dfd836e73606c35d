/* Becomes PROGRAM, which then may make only the system calls of a filter: in FILTER `in_filter.py
 * --to` has written what the kernel is to run. Both are absolute paths, given to the compiler. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static struct sock_filter rules[BPF_MAXINSNS];
    struct sock_fprog program = {.filter = rules};
    FILE *file = fopen(FILTER, "rb");

    if (argc == 0) {
        fputs("in_filter: started without a name\n", stderr);
        return 2;
    }
    if (file == NULL) {
        perror(FILTER);
        return 2;
    }
    program.len = (unsigned short)fread(rules, sizeof(rules[0]), BPF_MAXINSNS, file);
    fclose(file);
    argv[0] = PROGRAM;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        execv(PROGRAM, argv);
    perror(PROGRAM);
    return 2;
}
