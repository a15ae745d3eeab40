#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs Karpenter's own suites against an installation of its own (docs/karpenter-suites.md): builds the suites of the module that
# images/karpenter requires and those of Karpenter's core into .build/karpenter-suites/bin, makes a cluster with Karpenter as an
# add-on, calls test/karpentersuites, which does the rest, and takes the cluster down. Arguments are that program's: -list counts
# specs without a cluster, and -h tells the others. SUITES is an expression of the suites to build, if not all. KEEP=1 leaves the
# cluster running, and uses the one that an earlier run left.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly module=github.com/aws/karpenter-provider-aws core=sigs.k8s.io/karpenter cluster=muster account=000000000000 queue=muster
readonly work=$PWD/.build/karpenter-suites
readonly role=KarpenterNodeRole-$cluster # as the suites' node classes name it
export MUSTER_EGRESS=None MUSTER_STATE_DIR=$work/state KUBECONFIG=$work/kubeconfig
GOTOOLCHAIN=go$(awk '$1 == "go" {print $2}' images/karpenter/go.mod)
export GOTOOLCHAIN GOWORK=off CGO_ENABLED=0

die() { printf '%s\n' "$*" >&2; exit 1; }
say() { printf '%s\n' "$*" >&2; }

# copy MODULE DIRECTORY: the sources of a module where they can be built as the main module, whose go.mod has what its tests need.
copy() {
	local from
	from=$(go -C images/karpenter list -m -f '{{.Dir}} {{.Version}}' "$1")
	[[ $(cat "$2.version" 2>/dev/null) != "$from" ]] || return 0
	rm -rf "$2"
	mkdir -p "$2"
	cp -R "${from% *}/." "$2"
	chmod -R u+w "$2"
	printf '%s' "$from" >"$2.version"
}

# suites DIRECTORY PREFIX: compiles each suite that has tests, if that was not done since the versions changed.
suites() {
	local at name
	for at in "$1"/test/suites/*/; do
		name=$(basename "$at")
		compgen -G "$at*_test.go" >/dev/null && [[ ! ${SUITES-} || $2-$name =~ $SUITES ]] || continue
		[[ ! $work/bin/$2-$name.test -nt $1.version || ! $work/bin/$2-$name.test -nt images/karpenter/go.mod ]] || continue
		say "building $2-$name"
		go -C "$1" test -c -vet=off -o "$work/bin/$2-$name.test" "./test/suites/$name"
	done
}

build() {
	local replaced
	mkdir -p "$work/bin" "$work/report"
	copy "$module" "$work/provider"
	copy "$core" "$work/core"
	# Versions that upstream's go.mod requires and the module proxy does not have: images/karpenter replaces those of Karpenter, and
	# test/awssdk has one of FIS, which the suites alone ask for.
	while read -r replaced; do
		go -C "$work/provider" mod edit -replace="$replaced"
	done < <(awk '$1 == "replace" {print $2 "=" $4 "@" $5}' images/karpenter/go.mod
		awk '$1 ~ /service\/fis$/ {print $1 "=" $1 "@" $2}' test/awssdk/go.mod)
	say "building Karpenter's suites (minutes at first, seconds later)"
	export GOFLAGS='-mod=mod -trimpath -buildvcs=false -gcflags=all=-dwarf=false -ldflags=-s'
	suites "$work/provider" provider
	suites "$work/core" core
	GOFLAGS='-trimpath -buildvcs=false' go build -o "$work/bin/karpentersuites" ./test/karpentersuites
}

# policy: that of the example, for the suites' names: they make roles of machines, too, and have machines rebooted.
policy() {
	sed -e "s/role\/karpenter-nodes/role\/KarpenterNodeRole-*/; s/:interruptions/:$queue/; s/\"ec2:TerminateInstances\"/&, \"ec2:RebootInstances\"/" examples/karpenter/controller-policy.json
}

# network: subnets and two security groups that node classes choose by a tag, each with a name of the form that specs look for.
network() {
	local vpc group id
	read -r vpc group < <(aws eks describe-cluster --name "$cluster" --query 'cluster.resourcesVpcConfig.[vpcId,clusterSecurityGroupId]' --output text)
	id=$(aws ec2 create-security-group --group-name "$cluster-nodes" --description "a second group of machines" --vpc-id "$vpc" --query GroupId --output text)
	for id in $id $group $(aws eks describe-cluster --name "$cluster" --query 'cluster.resourcesVpcConfig.subnetIds[]' --output text); do
		aws ec2 create-tags --tags "Key=karpenter.sh/discovery,Value=$cluster" "Key=Name,Value=$cluster-Private-$id" --resources "$id"
	done
}

prepare() {
	local trust='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"SERVICE"},"Action":["sts:AssumeRole","sts:TagSession"]}]}' issuer policy rule pause
	bin/muster up --nodes 1
	eval "$(bin/muster env)"
	aws eks update-cluster-config --name "$cluster" --zonal-shift-config enabled=true
	# The suites want nodes that are not Karpenter's to take none of their pods.
	kubectl --context muster-management -n "$cluster" patch nodegroup default --type merge -p '{"spec":{"taints":[{"key":"CriticalAddonsOnly","effect":"NoSchedule"}]}}'
	aws iam create-role --role-name "$role" --assume-role-policy-document "${trust//SERVICE/ec2.amazonaws.com}"
	for policy in AmazonEKSWorkerNodePolicy AmazonEC2ContainerRegistryPullOnly; do
		aws iam attach-role-policy --role-name "$role" --policy-arn "arn:aws:iam::aws:policy/$policy"
	done
	aws eks create-access-entry --cluster-name "$cluster" --type EC2_LINUX --principal-arn "arn:aws:iam::$account:role/$role"
	# The role by the service account's annotation, as upstream's: specs read its name there, and take rights of it.
	issuer=$(aws eks describe-cluster --name "$cluster" --query cluster.identity.oidc.issuer --output text)
	aws iam create-open-id-connect-provider --url "$issuer" --client-id-list sts.amazonaws.com
	issuer=${issuer#https://}
	aws iam create-role --role-name karpenter-controller --assume-role-policy-document '{"Version":"2012-10-17","Statement":[{"Effect":"Allow",
		"Principal":{"Federated":"arn:aws:iam::'$account':oidc-provider/'"$issuer"'"},"Action":"sts:AssumeRoleWithWebIdentity",
		"Condition":{"StringEquals":{"'"$issuer"':sub":"system:serviceaccount:kube-system:karpenter","'"$issuer"':aud":"sts.amazonaws.com"}}}]}'
	aws iam put-role-policy --role-name karpenter-controller --policy-name karpenter --policy-document "$(policy)"
	# The role of the experiments by which specs interrupt spot instances.
	aws iam create-role --role-name FISInterruptionRole --assume-role-policy-document "${trust//SERVICE/fis.amazonaws.com}"
	aws iam put-role-policy --role-name FISInterruptionRole --policy-name interrupt --policy-document \
		'{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"ec2:SendSpotInstanceInterruptions","Resource":"*"}]}'
	network
	local arn=arn:aws:sqs:us-east-1:$account:$queue
	policy='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":["events.amazonaws.com","sqs.amazonaws.com"]},"Action":"sqs:SendMessage","Resource":"'$arn'"}]}'
	# Version 1 of the AWS CLI reads no variable for the endpoint of SQS.
	aws sqs create-queue --endpoint-url "$AWS_ENDPOINT_URL" --queue-name "$queue" --attributes '{"Policy":"'"${policy//\"/\\\"}"'"}'
	rule='{"source":["aws.ec2","aws.health"],"detail-type":["AWS Health Event","EC2 Spot Instance Interruption Warning","EC2 Instance Rebalance Recommendation","EC2 Instance State-change Notification"]}'
	aws events put-rule --name "$queue" --event-pattern "$rule"
	aws events put-targets --rule "$queue" --targets "Id=queue,Arn=$arn"
	# The suites clean up objects of this kind of the VPC resource controller, which is in every cluster of EKS.
	kubectl apply -f "$(go -C "$work/provider" list -m -f '{{.Dir}}' github.com/aws/amazon-vpc-resource-controller-k8s)/config/crd/bases/vpcresources.k8s.aws_securitygrouppolicies.yaml"
	for pause in public.ecr.aws/eks-distro/kubernetes/pause:3.2 registry.k8s.io/pause:3.10; do
		bin/muster image load --name "$pause" bin/images/pause.tar
	done
	bin/muster create addon karpenter --wait --role-arn "arn:aws:iam::$account:role/karpenter-controller" --values '{"replicas": 1, "podLabels": {"app.kubernetes.io/instance": "karpenter"},
		"tolerations": [{"key": "CriticalAddonsOnly", "operator": "Exists"}], "logLevel": "debug", "settings": {"interruptionQueue": "'$queue'", "enableZonalShift": true,
		"featureGates": {"nodeRepair": true, "spotToSpotConsolidation": true, "nodeOverlay": true, "staticCapacity": true, "capacityBuffer": true, "terminateFirstDrift": true, "terminateFirstRepair": true},
		"awsFeatureGates": {"nodeClassCEL": true, "rebootForRepair": true}}}'
	sed "s/\$CLUSTER_NAME/$cluster/" "$work/provider/test/pkg/environment/aws/default_ec2nodeclass.yaml" >"$work/nodeclass.yaml"
}

# environment: what the suites read, of the cluster that runs.
environment() {
	eval "$(bin/muster env)"
	CLUSTER_ENDPOINT=$(aws eks describe-cluster --name "$cluster" --query cluster.endpoint --output text)
	export CLUSTER_ENDPOINT CLUSTER_NAME=$cluster INTERRUPTION_QUEUE=$queue AWS_REGION=us-east-1 ENABLE_ZONAL_SHIFT=true
}

[[ -e bin/addons/karpenter.tar ]] || die "Karpenter is not built: make karpenter"
build
# What a host offers to machines (docs/machines.md): its memory but an eighth.
given=(-memory "$(awk '$1 == "MemTotal:" {print int($2 * 7 / 8 / 1024 / 1024)}' /proc/meminfo)" -bin "$work/bin" -report "$work/report" -table docs/karpenter-suites.tsv -karpenter "$(awk '$1 == "'$module'" {print $2; exit}' images/karpenter/go.mod)")
case " $* " in
*' -list '* | *' -h '*) exec "$work/bin/karpentersuites" "${given[@]}" "$@" ;;
esac
((EUID == 0)) || die "machines need root: run make karpenter-suites as root"
if [[ ! -e $work/state ]]; then
	rm -f "$work/nodeclass.yaml" # which tells that everything is prepared
	[[ -n ${KEEP-} ]] || trap 'bin/muster down --delete' EXIT
	prepare >"$work/report/prepare.log"
elif [[ -z ${KEEP-} || ! -e $work/nodeclass.yaml ]]; then
	die "an installation of an earlier run is left, which KEEP=1 uses if it is complete; take it down: MUSTER_STATE_DIR=$work/state bin/muster down --delete"
fi
environment
"$work/bin/karpentersuites" "${given[@]}" \
	-core-arguments "--default-nodeclass=$work/nodeclass.yaml --default-nodepool=$work/provider/test/pkg/environment/aws/default_nodepool.yaml --repair-condition=AcceleratedHardwareReady=False/NvidiaXID79Error --reboot-condition=AcceleratedHardwareReady=False/NvidiaXID46Error" "$@"
