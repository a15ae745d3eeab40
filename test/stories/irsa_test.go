// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// plainPod is a pod whose author knows nothing of AWS: the webhook gives it what AWS's SDK needs. NAME and ACCOUNT are
// filled in.
const plainPod = `apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec:
  serviceAccountName: ACCOUNT
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: whoami
    image: muster.dev/workload:v1
    imagePullPolicy: IfNotPresent
    command: [/opt/whoami, -watch]
    volumeMounts: [{name: opt, mountPath: /opt}]
  volumes:
  - {name: opt, hostPath: {path: /opt}}
`

// newWhoami builds the program of pods that say who AWS's SDK takes them for.
func newWhoami(t *testing.T) []byte {
	t.Helper()
	program := filepath.Join(t.TempDir(), "whoami")
	build := exec.CommandContext(t.Context(), "go", "-C", filepath.Join("..", "awssdk"), "build", "-o", program, "./whoami")
	build.Env = append(build.Environ(), "CGO_ENABLED=0") // it runs in a pod without a libc
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the program of the pods: %v\n%s", err, out)
	}
	raw, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// install puts the program of the pods onto the disk of a machine, whose id it returns.
func (w *iam) install(node string, program []byte) (machine string) {
	w.t.Helper()
	id := w.mustKubectl("get", "node", node, "-o", "jsonpath={.spec.providerID}")
	machine = id[strings.LastIndex(id, "/")+1:]
	if err := os.WriteFile(filepath.Join(string(w.dir), "machines", machine, "root", "opt", "whoami"), program, 0o755); err != nil {
		w.t.Fatal(err)
	}
	return machine
}

// irsaOn has pods get their roles on one node, which all of them run on.
func (w *iam) irsaOn(node string, program []byte) *irsa {
	w.t.Helper()
	machine := w.install(node, program)
	out, _ := w.muster("get", "clusters", "-o", "json")
	return &irsa{iam: w, machine: machine, issuer: issuerIn(w.t, out)}
}

// TestRolesOfPods has AWS's unmodified SDK in pods get roles: of an association, and of an annotation of their service
// account.
//
//story:about plane/issuer iam/webidentity iam/podwebhook iam/podpatch plane/tokensigner plane/tokenkeys plane/podidentity cloud/eksauth node/podidentityagent
func TestRolesOfPods(t *testing.T) {
	t.Parallel()
	program := newWhoami(t)
	i := newInstallation(t)
	i.muster("up", "--nodes", "2")
	i.ready()
	w := newIAM(t, i)
	t.Run("by EKS Pod Identity", func(t *testing.T) { (&podStory{iam: w.step(t), whoami: program}).podIdentity() })
	t.Run("by IRSA", func(t *testing.T) {
		w := w.step(t)
		w.mustKubectl("cordon", "--selector", "muster.dev/nodegroup")
		node := w.mustKubectl("get", "nodes", "--selector", "muster.dev/nodegroup=default", "-o", "jsonpath={.items[0].metadata.name}")
		w.mustKubectl("uncordon", node)
		w.irsaOn(node, program).roles()
	})
}

// roles has AWS's unmodified SDK in a pod get the role of the pod's service account, by nothing but the annotation, as
// guides to EKS write it.
func (w *irsa) roles() {
	for _, step := range []struct {
		name string
		run  func(*irsa)
	}{
		{"without a provider nobody gets a role", (*irsa).noProvider},
		{"a pod is its role", (*irsa).getsItsRole},
		{"the webhook gives what EKS's gives", (*irsa).asOnEKS},
		{"boto3 and the AWS CLI with what the pod has", (*irsa).otherSDKs},
		{"another service account gets nothing", (*irsa).notOthers},
		{"a pod whose service account is a moment younger", (*irsa).youngAccount},
		{"nobody but the API server may ask the webhook", (*irsa).strangersAsk},
		{"the webhook is away", (*irsa).webhookAway},
		{"the key of tokens is replaced under load", (*irsa).keyReplaced},
		{"a key is replaced while all are killed", (*irsa).keyReplacedInSpiteOfKills},
		{"the service is away", (*irsa).serviceAway},
		{"the pod is deleted", (*irsa).podGoes},
	} {
		if !w.t.Run(step.name, func(t *testing.T) {
			step.run(&irsa{iam: w.step(t), machine: w.machine, issuer: w.issuer})
		}) {
			return
		}
	}
}

type irsa struct {
	*iam
	machine, issuer string
}

// provider is the issuer as IAM names it.
func (w *irsa) provider() string { return strings.TrimPrefix(w.issuer, "https://") }

// pod makes a pod of a service account.
func (w *irsa) pod(name, account string) {
	w.t.Helper()
	w.apply(strings.NewReplacer("NAME", name, "ACCOUNT", account).Replace(plainPod))
}

// says waits until the newest line of a pod's log has a text.
func (w *irsa) says(pod, text string) {
	w.t.Helper()
	w.eventually("pod "+pod+" says "+text, func() error {
		out, err := w.kubectl("logs", pod)
		if err != nil {
			return err
		}
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if !strings.Contains(lines[len(lines)-1], text) {
			return fmt.Errorf("it says %q", lines)
		}
		return nil
	})
}

// token is that of a pod, copied from its machine.
func (w *irsa) token(pod string) string {
	w.t.Helper()
	uid := w.mustKubectl("get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
	out, _ := w.muster("exec", w.machine, "--", "sh", "-c", "cat /var/lib/kubelet/pods/"+uid+"/volumes/kubernetes.io~projected/aws-iam-token/token")
	if strings.Count(out, ".") != 2 {
		w.t.Fatalf("there is no token of pod %s", pod)
	}
	return strings.TrimSpace(out)
}

// exchange exchanges a token as anybody could who has copied it.
func (w *irsa) exchange(token string) error {
	w.t.Helper()
	file := filepath.Join(w.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		w.t.Fatal(err)
	}
	_, err := w.aws(w.admin, "sts", "assume-role-with-web-identity", "--role-arn", "arn:aws:iam::"+iamAccount+":role/app",
		"--role-session-name", "copied", "--web-identity-token", "file://"+file)
	return err
}

func (w *irsa) noProvider() {
	w.mustKubectl("create", "serviceaccount", "app")
	w.mustKubectl("annotate", "serviceaccount", "app", "eks.amazonaws.com/role-arn=arn:aws:iam::"+iamAccount+":role/app")
	w.pod("early", "app")
	w.says("early", "No OpenIDConnect provider found in your account for "+w.issuer)
	w.mustKubectl("delete", "pod", "early", "--wait=false")
}

func (w *irsa) getsItsRole() {
	// Guides of before 2023 give a thumbprint, which nobody looks at any more.
	const thumbprint = "9e99a48a9960b14926bb7f3b02e22da2b0ab7280"
	var made struct{ OpenIDConnectProviderArn string }
	w.mustAWS(&made, "iam", "create-open-id-connect-provider", "--url", w.issuer, "--client-id-list", "sts.amazonaws.com", "--thumbprint-list", thumbprint)
	var provider struct {
		URL                          string `json:"Url"`
		ClientIDList, ThumbprintList []string
	}
	w.mustAWS(&provider, "iam", "get-open-id-connect-provider", "--open-id-connect-provider-arn", made.OpenIDConnectProviderArn)
	if provider.URL != w.provider() || !slices.Equal(provider.ClientIDList, []string{"sts.amazonaws.com"}) || !slices.Equal(provider.ThumbprintList, []string{thumbprint}) {
		w.t.Errorf("IAM has the provider %+v", provider)
	}
	w.mustAWS(nil, "iam", "create-role", "--role-name", "app", "--assume-role-policy-document", `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow",
"Principal": {"Federated": "arn:aws:iam::`+iamAccount+`:oidc-provider/`+w.provider()+`"}, "Action": "sts:AssumeRoleWithWebIdentity",
"Condition": {"StringEquals": {"`+w.provider()+`:sub": "system:serviceaccount:default:app", "`+w.provider()+`:aud": "sts.amazonaws.com"}}}]}`)
	w.pod("me", "app")
	w.says("me", "is arn:aws:sts::"+iamAccount+":assumed-role/app/")
}

func (w *irsa) asOnEKS() {
	got := w.mustKubectl("get", "pod", "me", "-o", `jsonpath={range .spec.containers[0].env[*]}{.name}={.value}{"\n"}{end}`)
	want := strings.Join([]string{
		"AWS_STS_REGIONAL_ENDPOINTS=regional", "AWS_DEFAULT_REGION=us-east-1", "AWS_REGION=us-east-1", "AWS_ROLE_ARN=arn:aws:iam::" + iamAccount + ":role/app",
		"AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/secrets/eks.amazonaws.com/serviceaccount/token", "AWS_CA_BUNDLE=/var/run/secrets/muster.dev/aws/ca.pem",
	}, "\n")
	if strings.TrimSpace(got) != want {
		w.t.Errorf("the container has\n%s\nwant\n%s", got, want)
	}
	if kind := w.mustKubectl("get", "mutatingwebhookconfigurations", "pod-identity-webhook", "-o", "jsonpath={.webhooks[0].name}"); kind != "iam-for-pods.amazonaws.com" {
		w.t.Errorf("the webhook is called %s", kind)
	}
}

// otherSDKs has boto3 and the AWS CLI find the role by the pod's environment: in the pod's network on its machine, if
// the host's Python is there, and else on the host.
func (w *irsa) otherSDKs() {
	const program = `import boto3; print(boto3.client("sts").get_caller_identity()["Arn"])`
	want := "arn:aws:sts::" + iamAccount + ":assumed-role/app/"
	file := filepath.Join(w.t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(w.token("me")), 0o600); err != nil {
		w.t.Fatal(err)
	}
	environment := append([]string{"AWS_ROLE_ARN=arn:aws:iam::" + iamAccount + ":role/app", "AWS_WEB_IDENTITY_TOKEN_FILE=" + file}, w.endpoint...)
	if out, err := w.aws(environment, "sts", "get-caller-identity", "--query", "Arn", "--output", "text"); err != nil || !strings.HasPrefix(out, want) {
		w.t.Errorf("the AWS CLI: %q, %v", out, err)
	}
	out, err := exec.CommandContext(w.t.Context(), "python3", "-c", "import boto3, sys; print(sys.executable)").Output()
	if err != nil {
		w.t.Log("the python3 of this host has no boto3: boto3 is NOT tested")
		return
	}
	python := strings.TrimSpace(string(out))
	inside, talk, err := w.try("exec", w.machine, "--", "sh", "-c", `p=$(pgrep -f '^/opt/whoami' | head -n 1)
token=/var/lib/kubelet/pods/`+w.mustKubectl("get", "pod", "me", "-o", "jsonpath={.metadata.uid}")+`/volumes/kubernetes.io~projected/aws-iam-token/token
AWS_CA_BUNDLE=/etc/aws/ca.pem AWS_REGION=us-east-1 AWS_STS_REGIONAL_ENDPOINTS=regional AWS_ROLE_ARN=arn:aws:iam::`+iamAccount+`:role/app AWS_WEB_IDENTITY_TOKEN_FILE=$token \
nsenter --target "$p" --net `+python+` -c '`+program+`'`)
	switch {
	case err == nil && strings.HasPrefix(inside, want):
		w.t.Log("boto3 was asked in the network of the pod")
		return
	case !strings.Contains(talk, "No such file") && !strings.Contains(talk, "not found") && !strings.Contains(talk, "ermission denied") && !strings.Contains(talk, "No module"):
		w.t.Errorf("boto3 in the network of the pod: %q, %v\n%s", inside, err, talk)
	}
	w.t.Logf("the host's Python is not on the machine (%s): boto3 is tested on the host and NOT in the network of the pod", strings.TrimSpace(talk))
	if out, err := w.run(environment, python, "-c", program); err != nil || !strings.HasPrefix(out, want) {
		w.t.Errorf("boto3: %q, %v", out, err)
	}
}

// notOthers has a service account name the role of another, and one that names none.
func (w *irsa) notOthers() {
	w.mustKubectl("create", "serviceaccount", "thief")
	w.mustKubectl("annotate", "serviceaccount", "thief", "eks.amazonaws.com/role-arn=arn:aws:iam::"+iamAccount+":role/app")
	w.pod("thief", "thief")
	w.says("thief", "Not authorized to perform sts:AssumeRoleWithWebIdentity")
	w.pod("nobody", "default")
	if env := w.mustKubectl("get", "pod", "nobody", "-o", "jsonpath={.spec.containers[0].env}"); env != "" {
		w.t.Errorf("a pod without an identity has %s", env)
	}
	w.mustKubectl("delete", "pod", "thief", "nobody", "--wait=false")
}

// youngAccount makes a service account and its pod at once, ten times.
func (w *irsa) youngAccount() {
	const both = `apiVersion: v1
kind: ServiceAccount
metadata: {name: young-N, annotations: {eks.amazonaws.com/role-arn: "arn:aws:iam::` + iamAccount + `:role/app"}}
---
`
	for n := range 10 {
		name := fmt.Sprintf("young-%d", n)
		w.apply(strings.ReplaceAll(both, "young-N", name) + strings.NewReplacer("NAME", name, "ACCOUNT", name).Replace(plainPod))
		if env := w.mustKubectl("get", "pod", name, "-o", "jsonpath={.spec.containers[0].env}"); !strings.Contains(env, "AWS_ROLE_ARN") {
			w.t.Errorf("%s was made without an identity: %s", name, env)
		}
		w.mustKubectl("delete", "pod", name, "--wait=false", "--grace-period=0", "--force")
	}
}

// serviceAway kills the service: the webhook is another process, so that pods are given their identities meanwhile, and
// STS is soon back.
func (w *irsa) serviceAway() {
	w.kill("serve")
	w.pod("meanwhile", "app")
	if env := w.mustKubectl("get", "pod", "meanwhile", "-o", "jsonpath={.spec.containers[0].env}"); !strings.Contains(env, "AWS_ROLE_ARN") {
		w.t.Errorf("while the service was away, a pod was made without an identity: %s", env)
	}
	w.says("meanwhile", "is arn:aws:sts::"+iamAccount+":assumed-role/app/")
	w.mustKubectl("delete", "pod", "meanwhile", "--wait=false")
}

func (w *irsa) podGoes() {
	token := w.token("me")
	if err := w.exchange(token); err != nil {
		w.t.Fatalf("the copied token is worth nothing from the start: %v", err)
	}
	w.mustKubectl("delete", "pod", "me", "--grace-period=0", "--force")
	deleted, asked := time.Now(), 0
	for {
		asked++
		if answer := w.asksSTS(token); strings.Contains(answer, "<Code>IDPRejectedClaim</Code>") {
			break
		} else if !strings.Contains(answer, "<SecretAccessKey>") || time.Since(deleted) > patience {
			w.t.Fatalf("%v after the pod was deleted the copied token gets %.200s", time.Since(deleted), answer)
		}
	}
	w.t.Logf("the copied token was refused %v after the pod was deleted, the %d. time that it was tried", time.Since(deleted).Round(time.Millisecond), asked)
}

// asksSTS exchanges a token at the account's endpoint as SDKs do, which is a form that nobody signs.
func (w *irsa) asksSTS(token string) string {
	w.t.Helper()
	var variables struct {
		Authority string `json:"AWS_CA_BUNDLE"`
		Endpoint  string `json:"AWS_ENDPOINT_URL"`
	}
	out, _ := w.muster("env", "-o", "json")
	ca, err := []byte(nil), json.Unmarshal([]byte(out), &variables)
	if err == nil {
		ca, err = os.ReadFile(variables.Authority)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	answer, err := client.PostForm(variables.Endpoint, url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleSessionName": {"copied"},
		"RoleArn": {"arn:aws:iam::" + iamAccount + ":role/app"}, "WebIdentityToken": {token},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	raw, err := io.ReadAll(answer.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(raw)
}
