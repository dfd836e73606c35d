typedef int svc_empty_rng;
