typedef int svc_empty_list;
