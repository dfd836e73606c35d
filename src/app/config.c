typedef int svc_empty_config;
