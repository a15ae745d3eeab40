// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// podTrust is what EKS's user guide has for roles of pods.
const podTrust = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": ["sts:AssumeRole", "sts:TagSession"]}]}`

// podByHand is a pod whose author wrote down what the webhook gives those of a service account with an association: it
// asks the agent without one. NAME, NODE and ACCOUNT are filled in.
const podByHand = `apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  serviceAccountName: ACCOUNT
  nodeName: NODE
  restartPolicy: Never
  containers:
  - name: whoami
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    command: [/opt/whoami, -watch]
    env:
    - {name: AWS_CONTAINER_CREDENTIALS_FULL_URI, value: "http://169.254.170.23/v1/credentials"}
    - {name: AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, value: /var/run/secrets/pods.eks.amazonaws.com/serviceaccount/eks-pod-identity-token}
    - {name: AWS_CA_BUNDLE, value: /etc/aws/ca.pem}
    - {name: AWS_REGION, value: us-east-1}
    volumeMounts:
    - {name: opt, mountPath: /opt}
    - {name: aws, mountPath: /etc/aws}
    - {name: eks-pod-identity-token, mountPath: /var/run/secrets/pods.eks.amazonaws.com/serviceaccount, readOnly: true}
  volumes:
  - {name: opt, hostPath: {path: /opt}}
  - {name: aws, hostPath: {path: /etc/aws}}
  - name: eks-pod-identity-token
    projected:
      sources:
      - serviceAccountToken: {audience: pods.eks.amazonaws.com, expirationSeconds: 86400, path: eks-pod-identity-token}
`

// podIdentity has AWS's unmodified SDK in pods get the role of an association, and everybody else get nothing.
func (w *podStory) podIdentity() {
	w.nodes = strings.Fields(w.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(w.nodes) != 2 {
		w.t.Fatal(w.nodes)
	}
	for _, node := range w.nodes {
		w.install(node, w.whoami)
	}
	defer w.leave()
	w.mustAWS(nil, "iam", "create-role", "--role-name", "app", "--assume-role-policy-document", podTrust)
	w.mustKubectl("create", "serviceaccount", "app")
	w.mustAWS(&w.association, "eks", "create-pod-identity-association", "--cluster-name", "muster", "--namespace", "default", "--service-account", "app", "--role-arn", "arn:aws:iam::"+iamAccount+":role/app")
	for _, step := range []struct {
		name string
		run  func(*podStory)
	}{
		{"a pod is its role", (*podStory).getsItsRole},
		{"the webhook gives what EKS's gives", (*podStory).asOnEKS},
		{"the node's role cannot be had from a pod", (*podStory).notTheNodes},
		{"what a pod without an identity reaches", (*podStory).reaches},
		{"a pod of the host network", (*podStory).hostNetwork},
		{"a copied token", (*podStory).copiedToken},
		{"the add-on", (*podStory).addon},
		{"a target role", (*podStory).targetRole},
		{"the association is removed", (*podStory).associationGoes},
		{"the pod is deleted", (*podStory).podGoes},
		{"two hops", (*podStory).twoHops},
	} {
		if !w.t.Run(step.name, func(t *testing.T) {
			step.run(&podStory{iam: w.step(t), nodes: w.nodes, whoami: w.whoami, association: w.association})
		}) {
			return
		}
	}
}

// leave takes away what another story of pods has by the same name, whatever has failed.
func (w *podStory) leave() {
	failed := w.t.Failed()
	_, pods := w.kubectl("delete", "pods", "--all", "--force", "--grace-period=0")
	_, accounts := w.kubectl("delete", "serviceaccounts", "app", "far", "--ignore-not-found")
	_, app := w.aws(w.admin, "iam", "delete-role", "--role-name", "app")
	_, far := w.aws(w.admin, "iam", "delete-role", "--role-name", "far")
	if err := errors.Join(pods, accounts, app, far); err != nil && !failed { // else there may be less
		w.t.Error(err)
	}
}

type podStory struct {
	*iam
	nodes       []string
	whoami      []byte // the program of the pods
	association struct {
		Association struct{ AssociationID string }
	}
}

func (w *podStory) inMachine(node, script string) string {
	w.t.Helper()
	out, talk := w.muster("exec", node, "--", "sh", "-c", script)
	if out == "" {
		w.t.Logf("on %s: %s", node, talk)
	}
	return out
}

// pod makes a pod on a node, whose author knows nothing of AWS. The webhook gives it an identity, if its service
// account has one.
func (w *podStory) pod(name, node, account string) {
	w.t.Helper()
	w.apply(strings.NewReplacer("NAME", name, "ACCOUNT", account, "spec:\n", "spec:\n  nodeName: "+node+"\n").Replace(plainPod))
}

// byHand makes a pod that asks the agent although nobody says that it may, or not even that.
func (w *podStory) byHand(name, node string, asksAgent bool, change ...string) {
	w.t.Helper()
	manifest := strings.NewReplacer(append(change, "NAME", name, "NODE", node, "ACCOUNT", "default")...).Replace(podByHand)
	if !asksAgent {
		manifest = strings.ReplaceAll(manifest, "AWS_CONTAINER_", "NOT_") // so that instance metadata is next
	}
	w.apply(manifest)
}

// associated waits until the webhook knows of an association. Before that a pod would go without.
func (w *podStory) associated(account string) {
	w.t.Helper()
	pod := w.manifest(strings.NewReplacer("NAME", "dry", "ACCOUNT", account).Replace(plainPod))
	took := w.eventually("the next pod of "+account+" has an identity", func() error {
		env, err := w.kubectl("create", "--dry-run=server", "-f", pod, "-o", "jsonpath={.spec.containers[0].env[*].name}")
		if err == nil && !strings.Contains(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI") {
			err = fmt.Errorf("it has %q", env)
		}
		return err
	})
	w.t.Logf("the webhook knew of the association of %s within %v", account, took.Round(time.Millisecond))
}

// says waits until the newest line of a pod's log has a text, and returns the moment in it.
func (w *podStory) says(pod, text string) time.Time {
	w.t.Helper()
	var at time.Time
	w.eventually("pod "+pod+" says "+text, func() error {
		out, err := w.kubectl("logs", pod)
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		moment, rest, _ := strings.Cut(lines[len(lines)-1], " ")
		if !strings.Contains(rest, text) {
			return fmt.Errorf("it says %q", lines)
		}
		at, err = time.Parse(time.RFC3339Nano, moment)
		return err
	})
	return at
}

func (w *podStory) uid(pod string) string {
	return w.mustKubectl("get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
}

func (w *podStory) getsItsRole() {
	w.associated("app")
	w.pod("me", w.nodes[0], "app")
	session := "arn:aws:sts::" + iamAccount + ":assumed-role/app/eks-muster-me-" + w.uid("me")
	w.says("me", "is "+session)
	out, _ := w.muster("auth", "pod", "default/me")
	for _, want := range []string{"has the role arn:aws:iam::" + iamAccount + ":role/app, by: EKS Pod Identity.", session + ", until ", "instance metadata is closed to pods"} {
		if !strings.Contains(out, want) {
			w.t.Errorf("muster auth pod does not say %q:\n%s", want, out)
		}
	}
	if out, _ := w.muster("get", "podidentityassociations", "default/app", "-o", "name"); strings.TrimSpace(out) != "podidentityassociation.muster.dev/"+w.association.Association.AssociationID {
		w.t.Errorf("muster get says %q", out)
	}
}

func (w *podStory) asOnEKS() {
	got := w.mustKubectl("get", "pod", "me", "-o", `jsonpath={range .spec.containers[0].env[*]}{.name}={.value}{"\n"}{end}{range .spec.volumes[*].projected.sources[*].serviceAccountToken}{.audience} {.path}{"\n"}{end}`)
	want := strings.Join([]string{
		"AWS_STS_REGIONAL_ENDPOINTS=regional", "AWS_DEFAULT_REGION=us-east-1", "AWS_REGION=us-east-1", "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://169.254.170.23/v1/credentials",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=/var/run/secrets/pods.eks.amazonaws.com/serviceaccount/eks-pod-identity-token", "AWS_CA_BUNDLE=/var/run/secrets/muster.dev/aws/ca.pem",
		"pods.eks.amazonaws.com eks-pod-identity-token",
	}, "\n")
	if !strings.HasPrefix(strings.TrimSpace(got), want) {
		w.t.Errorf("the container has\n%s\nwant\n%s", got, want)
	}
}

// notTheNodes has a pod without an association ask by all ways that the SDK knows, instance metadata among them.
func (w *podStory) notTheNodes() {
	w.byHand("nobody", w.nodes[0], false)
	w.says("nobody", "no EC2 IMDS role found")
	w.byHand("none", w.nodes[0], true) // and with the agent
	w.says("none", "No association found for service account default in namespace default of cluster muster")
	w.mustKubectl("delete", "pod", "none", "--wait=false")
}

// asksAgent asks the agent on a node with the token of a pod of the first node. in is a command before curl.
func (w *podStory) asksAgent(node, uid, in string) string {
	w.t.Helper()
	token := strings.TrimSpace(w.inMachine(w.nodes[0], "cat /var/lib/kubelet/pods/"+uid+"/volumes/kubernetes.io~projected/eks-pod-identity-token/eks-pod-identity-token"))
	if strings.Count(token, ".") != 2 {
		w.t.Fatal("there is no token of the pod")
	}
	return w.asksWith(node, token, in)
}

func (w *podStory) asksWith(node, token, in string) string {
	return w.inMachine(node, `umask 077; f=$(mktemp); printf 'header = "Authorization: %s"\n' '`+token+`' >"$f"
`+in+` curl -sS --max-time 10 -K "$f" -w ' %{http_code}' http://169.254.170.23/v1/credentials | sed 's/"SecretAccessKey":"[^"]*"/SECRET/; s/"Token":"[^"]*"/TOKEN/'; rm "$f"`)
}

func (w *podStory) copiedToken() {
	uid := w.uid("me")
	w.byHand("other", w.nodes[0], true)
	w.says("other", "No association found")
	if got := w.asksAgent(w.nodes[0], uid, ""); !strings.HasSuffix(got, " 200") || !strings.Contains(got, `"AccountId":"`+iamAccount+`"`) {
		w.t.Fatalf("on its own machine one gets nothing, so nothing is shown: %s", got)
	}
	if got := w.asksAgent(w.nodes[1], uid, ""); !strings.Contains(got, "runs on node "+w.nodes[0]+" and not on "+w.nodes[1]) || strings.Contains(got, "SECRET") {
		w.t.Errorf("on another machine: %s", got)
	}
	if got := w.asksAgent(w.nodes[0], uid, w.inNetworkOf("other")); !strings.Contains(got, "of another pod") || !strings.HasSuffix(got, " 403") {
		w.t.Errorf("in the network of another pod of the same machine: %s", got)
	}
	w.mustKubectl("delete", "pod", "other", "--wait=false")
}

func (w *podStory) addon() {
	w.mustAWS(nil, "eks", "create-addon", "--cluster-name", "muster", "--addon-name", "eks-pod-identity-agent")
	w.eksBecomes(addonPath("muster", "eks-pod-identity-agent"), "ACTIVE")
}

// targetRole has a second association whose target role asks for the external id and for a tag of the first session.
func (w *podStory) targetRole() {
	w.mustKubectl("create", "serviceaccount", "far")
	w.mustAWS(nil, "iam", "create-role", "--role-name", "far", "--assume-role-policy-document", `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam::`+iamAccount+`:role/app"},
"Action": ["sts:AssumeRole", "sts:TagSession"], "Condition": {"StringEquals": {"sts:ExternalId": "us-east-1/`+iamAccount+`/muster/default/far", "aws:PrincipalTag/kubernetes-service-account": "far"}}}]}`)
	w.muster("create", "podidentityassociation", "--namespace", "default", "--service-account", "far",
		"--role-arn", "arn:aws:iam::"+iamAccount+":role/app", "--target-role-arn", "arn:aws:iam::"+iamAccount+":role/far")
	w.associated("far")
	w.pod("far", w.nodes[1], "far")
	w.says("far", "is arn:aws:sts::"+iamAccount+":assumed-role/far/eks-muster-far-"+w.uid("far"))
	if out, _ := w.muster("auth", "pod", "default/far"); !strings.Contains(out, "has the role arn:aws:iam::"+iamAccount+":role/far, by: EKS Pod Identity.") {
		w.t.Errorf("muster auth pod says:\n%s", out)
	}
	w.muster("delete", "podidentityassociation", "default/far")
	w.says("far", "refused InvalidClientTokenId")
	w.mustKubectl("delete", "pod", "far", "--wait=false")
}

// associationGoes takes the role away from a pod that has its credentials in memory.
func (w *podStory) associationGoes() {
	uid, id := w.uid("me"), w.association.Association.AssociationID
	c := newAWSClient(w.t, w.iam) // the AWS CLI takes seconds to begin and to end
	began := time.Now()
	answer, err := c.send(eksRequest(http.MethodDelete, "/clusters/muster/pod-identity-associations/"+id, ""))
	deleted := time.Now()
	if err != nil || answer.status != http.StatusOK {
		w.t.Fatal(answer, err)
	}
	at := w.says("me", "refused InvalidClientTokenId")
	w.t.Logf("STS refused the pod's session %v after the request to remove the association, which took %v; the pod asks every 50 ms",
		at.Sub(began).Round(time.Millisecond), deleted.Sub(began).Round(time.Millisecond))
	if got := w.asksAgent(w.nodes[0], uid, ""); !strings.Contains(got, "No association found for service account app") || !strings.HasSuffix(got, " 404") {
		w.t.Errorf("the agent gives: %s", got)
	}
}

// podGoes copies the token of a pod, deletes the pod, and tries the copy.
func (w *podStory) podGoes() {
	w.mustKubectl("delete", "pod", "me", "--grace-period=0", "--force")
	w.mustAWS(&w.association, "eks", "create-pod-identity-association", "--cluster-name", "muster", "--namespace", "default", "--service-account", "app", "--role-arn", "arn:aws:iam::"+iamAccount+":role/app")
	w.associated("app")
	w.pod("me", w.nodes[0], "app")
	uid := w.uid("me")
	w.says("me", "is arn:aws:sts::"+iamAccount+":assumed-role/app/")
	token := strings.TrimSpace(w.inMachine(w.nodes[0], "cat /var/lib/kubelet/pods/"+uid+"/volumes/kubernetes.io~projected/eks-pod-identity-token/eks-pod-identity-token"))
	if got := w.asksWith(w.nodes[0], token, ""); !strings.HasSuffix(got, " 200") {
		w.t.Fatalf("the copy is worth nothing from the start: %s", got)
	}
	w.mustKubectl("delete", "pod", "me", "--grace-period=0", "--force")
	took := w.eventually("the copied token is refused", func() error {
		if got := w.asksWith(w.nodes[0], token, ""); !strings.Contains(got, "InvalidTokenException") {
			return errors.New(got)
		}
		return nil
	})
	w.t.Logf("the copied token was refused within %v after the pod was deleted, the time of muster exec included", took.Round(time.Millisecond))
	w.mustAWS(nil, "eks", "delete-pod-identity-association", "--cluster-name", "muster", "--association-id", w.association.Association.AssociationID)
}
