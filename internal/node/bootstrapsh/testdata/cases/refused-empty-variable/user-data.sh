/etc/eks/bootstrap.sh c --b64-cluster-ca $EMPTY --apiserver-endpoint https://192.168.64.2
