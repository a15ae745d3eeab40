/etc/eks/bootstrap.sh c --help
