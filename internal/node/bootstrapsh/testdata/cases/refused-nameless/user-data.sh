/etc/eks/bootstrap.sh --use-max-pods false
