typedef int svc_empty_entity;
