typedef int svc_empty_turn;
