aws eks create-nodegroup \
  --capacity-type ON_DEMAND \
  --cluster-name Blue_1 \
  --disk-size 30 \
  --instance-types t3.small t3.medium \
  --labels '{"a.example/b":"","tier":"web"}' \
  --node-role arn:aws:iam::000000000000:role/muster-node-blue-1--20c6c1d917 \
  --nodegroup-name web \
  --scaling-config '{"desiredSize":2,"maxSize":4,"minSize":1}' \
  --subnets subnet-00000000000000002
