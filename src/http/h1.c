typedef int svc_empty_h1;
