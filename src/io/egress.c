typedef int svc_empty_egress;
