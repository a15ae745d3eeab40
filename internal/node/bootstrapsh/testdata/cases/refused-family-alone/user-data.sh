/etc/eks/bootstrap.sh c --ip-family ipv6
