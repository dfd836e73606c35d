typedef int svc_empty_disk;
