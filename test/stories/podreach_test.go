// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"strings"
)

// inNetworkOf is the beginning of a command that runs in the network of a pod of the program, on the pod's machine.
func (w *podStory) inNetworkOf(pod string) string {
	w.t.Helper()
	return `nsenter --target "$(for p in $(pgrep -f '^/opt/whoami'); do grep -q '` + w.uid(pod) + `' /proc/$p/cgroup && echo $p; done | head -n 1)" --net`
}

// reaches tries from a pod without an identity what docs/pod-identity.md says of such pods: the account's APIs answer
// it as nobody, the agent wants a token, the kubelet knows it not, and instance metadata answers neither version.
func (w *podStory) reaches() {
	const status = " curl -sk --max-time 3 -o /dev/null -w '%{http_code}' "
	for what, c := range map[string]struct{ curl, want string }{
		"the AWS APIs":                 {"-d 'Action=GetCallerIdentity&Version=2011-06-15' https://172.31.0.3/", "403"},
		"metadata, version 1":          {"http://169.254.169.254/latest/meta-data/iam/security-credentials/", "000"},
		"metadata, version 2":          {"-X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token", "000"},
		"the agent, without a token":   {"http://169.254.170.23/v1/credentials", "400"},
		"the agent, by another name":   {"-H 'Host: agent.example.com' http://169.254.170.23/v1/credentials", "403"},
		"the kubelet":                  {"https://" + w.address(w.nodes[0]) + ":10250/pods", "401"},
		"the kubelet, without TLS":     {"http://" + w.address(w.nodes[0]) + ":10255/pods", "000"},
		"the API server, about health": {"https://172.31.0.4/readyz", "200"},
		"the API server, otherwise":    {"https://172.31.0.4/api", "401"},
	} {
		if got := w.inMachine(w.nodes[0], w.inNetworkOf("nobody")+status+c.curl+" || true"); got != c.want {
			w.t.Errorf("%s: %q, not %s", what, got, c.want)
		}
	}
	w.mustKubectl("delete", "pod", "nobody", "--wait=false")
}

func (w *podStory) address(node string) string {
	return w.mustKubectl("get", "node", node, "-o", `jsonpath={.status.addresses[?(@.type=="InternalIP")].address}`)
}

// isTheNode waits until a pod has a role, that of its node, and until muster says so.
func (w *podStory) isTheNode(pod, role, why string) {
	w.t.Helper()
	w.says(pod, "is arn:aws:sts::"+iamAccount+":assumed-role/"+role+"/i-")
	out, _, err := w.try("auth", "pod", "default/"+pod)
	if err != nil || !strings.Contains(out, "has the role arn:aws:iam::"+iamAccount+":role/"+role+", by: role of the node.") || !strings.Contains(out, why) {
		w.t.Errorf("muster auth pod says %v\n%s", err, out)
	}
	w.mustKubectl("delete", "pod", pod, "--wait=false")
}

// hostNetwork has a pod of the host network take the role of its node, and muster say that it can.
func (w *podStory) hostNetwork() {
	w.byHand("host", w.nodes[0], false, "restartPolicy:", "hostNetwork: true\n  restartPolicy:")
	w.isTheNode("host", "muster-node-muster", "the pod has the network of its node")
}

// twoHops has a node group whose launch template opens instance metadata to pods: a pod there takes the role of the
// node, and muster says so of the pod and of the machines.
func (w *podStory) twoHops() {
	const note = "pods on 1 machine of node group open can take the role of the node: httpPutResponseHopLimit is more than 1 there"
	if out, _ := w.muster("status"); strings.Contains(out, "httpPutResponseHopLimit") {
		w.t.Errorf("before there is such a machine, muster status says:\n%s", out)
	}
	subnet, err := w.aws(w.admin, "ec2", "describe-subnets", "--query", "Subnets[0].SubnetId", "--output", "text")
	if err != nil {
		w.t.Fatal(err)
	}
	w.mustAWS(nil, "ec2", "create-launch-template", "--launch-template-name", "open", "--launch-template-data", `{"MetadataOptions":{"HttpTokens":"required","HttpPutResponseHopLimit":2}}`)
	w.mustAWS(nil, "eks", "create-nodegroup", "--cluster-name", "muster", "--nodegroup-name", "open", "--node-role", "arn:aws:iam::"+iamAccount+":role/muster-node",
		"--subnets", strings.TrimSpace(subnet), "--scaling-config", "minSize=0,maxSize=1,desiredSize=1", "--labels", "pool=open", "--launch-template", "name=open,version=1")
	w.eksBecomes(nodegroupPath("muster", "open"), "ACTIVE")
	node := w.mustKubectl("get", "nodes", "-l", "pool=open", "-o", "jsonpath={.items[*].metadata.name}")
	w.install(node, w.whoami)
	w.byHand("open", node, false)
	w.isTheNode("open", "muster-node", "was launched with httpPutResponseHopLimit 2")
	if out, _ := w.muster("status"); !strings.Contains(out, note) {
		w.t.Errorf("muster status does not say %q:\n%s", note, out)
	}
}
