/etc/eks/bootstrap.sh c --ip-family ipv4 --service-ipv6-cidr fd12:3456::/108
