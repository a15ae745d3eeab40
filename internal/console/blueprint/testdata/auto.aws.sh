aws eks create-cluster \
  --access-config '{"authenticationMode":"API_AND_CONFIG_MAP"}' \
  --no-bootstrap-self-managed-addons \
  --compute-config '{"enabled":true,"nodePools":["general-purpose","system"],"nodeRoleArn":"arn:aws:iam::000000000000:role/nodes"}' \
  --kubernetes-network-config '{"elasticLoadBalancing":{"enabled":true}}' \
  --name Blue_1 \
  --resources-vpc-config '{"subnetIds":["subnet-00000000000000001","subnet-00000000000000002"]}' \
  --role-arn arn:aws:iam::000000000000:role/eks \
  --storage-config '{"blockStorage":{"enabled":true}}' \
  --kubernetes-version 1.36
