aws eks create-cluster \
  --access-config '{"authenticationMode":"API_AND_CONFIG_MAP"}' \
  --no-bootstrap-self-managed-addons \
  --logging '{"clusterLogging":[{"enabled":true,"types":["api","audit"]}]}' \
  --name Blue_1 \
  --resources-vpc-config '{"subnetIds":["subnet-00000000000000001","subnet-00000000000000002"]}' \
  --role-arn arn:aws:iam::000000000000:role/eks \
  --kubernetes-version 1.36
aws eks wait cluster-active --name Blue_1
aws eks create-nodegroup \
  --capacity-type ON_DEMAND \
  --cluster-name Blue_1 \
  --disk-size 30 \
  --instance-types t3.small t3.medium \
  --labels '{"a.example/b":"","tier":"web"}' \
  --node-role arn:aws:iam::000000000000:role/muster-node-blue-1--20c6c1d917 \
  --nodegroup-name web \
  --scaling-config '{"desiredSize":2,"maxSize":4,"minSize":1}' \
  --subnets subnet-00000000000000001 subnet-00000000000000002
aws eks create-nodegroup \
  --capacity-type ON_DEMAND \
  --cluster-name Blue_1 \
  --disk-size 20 \
  --instance-types t3.medium \
  --node-role arn:aws:iam::000000000000:role/nodes \
  --nodegroup-name team \
  --scaling-config '{"desiredSize":0,"maxSize":2,"minSize":0}' \
  --subnets subnet-00000000000000001 subnet-00000000000000002
aws eks create-addon \
  --addon-name coredns \
  --cluster-name Blue_1
aws eks create-addon \
  --addon-name kube-proxy \
  --cluster-name Blue_1
aws eks create-addon \
  --addon-name vpc-cni \
  --cluster-name Blue_1
