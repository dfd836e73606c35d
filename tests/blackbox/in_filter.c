/* Becomes a program that may make only the system calls of a filter: `in_filter FILE PROGRAM
 * [ARGUMENT...]`, where `in_filter.py --to FILE` has written what the kernel is to run. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static struct sock_filter rules[BPF_MAXINSNS];
    struct sock_fprog program = {.filter = rules};
    FILE *file = argc > 2 ? fopen(argv[1], "rb") : NULL;

    if (file == NULL)
        return 2;
    program.len = (unsigned short)fread(rules, sizeof(rules[0]), BPF_MAXINSNS, file);
    fclose(file);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
        execv(argv[2], argv + 2);
    perror(argv[2]);
    return 2;
}
