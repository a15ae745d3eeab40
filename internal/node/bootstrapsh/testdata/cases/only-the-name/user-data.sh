/etc/eks/bootstrap.sh my-cluster
