typedef int svc_empty_matcher;
