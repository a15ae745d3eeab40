/etc/eks/bootstrap.sh c --kubelet-extra-args --v=4 --kubelet-extra-args --v=5
