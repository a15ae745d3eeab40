/etc/eks/bootstrap.sh \
  --apiserver-endpoint https://192.168.64.2:443 \
  --aws-api-retry-attempts 5 \
  --b64-cluster-ca AUTHORITY \
  --cluster-id 0a1b2c3d \
  --container-runtime containerd \
  --containerd-config-file /etc/my-containerd.toml \
  --dns-cluster-ip 10.100.0.10,10.100.0.11 \
  --docker-config-json '{"debug": true}' \
  --enable-docker-bridge true \
  --enable-local-outpost false \
  --ip-family IPv4 \
  --kubelet-extra-args "--register-with-taints=dedicated=batch:NoSchedule --v 4" \
  --local-disks raid0 \
  --mount-bpf-fs true \
  --pause-container-account 602401143452 \
  --pause-container-version 3.5 \
  --service-ipv4-cidr 10.100.0.0/16 \
  --use-max-pods true \
  my-cluster
