/etc/eks/bootstrap.sh c more --node-labels=a=b --use-max-pods=false --v --b64-cluster-ca=abc --service-ipv4-cidr
