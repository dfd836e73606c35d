typedef int svc_empty_sign;
