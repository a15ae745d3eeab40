/etc/eks/bootstrap.sh c --apiserver-endpoint http://192.168.64.2 --b64-cluster-ca aGVsbG8= --service-ipv4-cidr 10.100.0.1/16 --kubelet-extra-args "'--x=a b' stray"
