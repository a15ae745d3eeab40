/etc/eks/bootstrap.sh c --service-ipv6-cidr fd12:3456::/108 --service-ipv4-cidr 10.100.0.0/16
