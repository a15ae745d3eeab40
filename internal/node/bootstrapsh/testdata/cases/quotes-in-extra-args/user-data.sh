/etc/eks/bootstrap.sh c --use-max-pods false --kubelet-extra-args '--node-labels="a=b,c=d" '"'--feature-gates=A=true'"' --v=\4   --max_pods 12'
