EMPTY=
/etc/eks/bootstrap.sh c --b64-cluster-ca "$EMPTY" --apiserver-endpoint "$EMPTY" --kubelet-extra-args "$EMPTY" --dns-cluster-ip "" ""
