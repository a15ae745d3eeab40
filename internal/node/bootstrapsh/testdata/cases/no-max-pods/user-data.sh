/etc/eks/bootstrap.sh c --use-max-pods false
