/etc/eks/bootstrap.sh c --ip-family ipv6 --dns-cluster-ip fd12:3456::a
