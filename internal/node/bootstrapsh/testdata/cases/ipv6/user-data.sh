/etc/eks/bootstrap.sh c --ip-family ipv6 --service-ipv4-cidr None --service-ipv6-cidr fd12:3456::/108
