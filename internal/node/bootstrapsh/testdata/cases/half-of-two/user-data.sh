/etc/eks/bootstrap.sh c --apiserver-endpoint https://192.168.64.2:443 --b64-cluster-ca ""
