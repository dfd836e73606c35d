typedef int svc_empty_shape;
