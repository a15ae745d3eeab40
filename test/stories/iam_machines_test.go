// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"muster.dev/muster/internal/iam/ekstoken"
)

// wholeBootstrapToken is what must not be found.
var wholeBootstrapToken = regexp.MustCompile(`\b[a-z0-9]{6}\.[a-z0-9]{16}\b`)

// machineKeys are those that instance metadata gives a machine.
func (w *iam) machineKeys(machine, role string) keys {
	w.t.Helper()
	raw, ok := strings.CutSuffix(w.askMetadata(machine, "meta-data/iam/security-credentials/"+role), " 200")
	var answer struct {
		Code, Token string
		keys
		Expiration time.Time
	}
	if err := json.Unmarshal([]byte(raw), &answer); err != nil || !ok || answer.Code != "Success" || !strings.HasPrefix(answer.AccessKeyID, "ASIA") || time.Until(answer.Expiration) < time.Hour {
		w.t.Fatalf("instance metadata gives no good credentials (%v, %d bytes, key %s, until %s)", err, len(raw), answer.AccessKeyID, answer.Expiration)
	}
	answer.SessionToken = answer.Token
	return answer.keys
}

// noTokenOnDisk looks into every file of text that a machine writes to. A file with a token is put there first, to see
// that it is found.
func (w *iam) noTokenOnDisk() {
	const planted = "/var/lib/kubelet/planted"
	out, _ := w.muster("exec", pageMachine, "--", "sh", "-c", `umask 077; printf 'token: %s.%s\n' abcdef 0123456789abcdef > `+planted+`
grep -rIlE '(^|[^a-z0-9])[a-z0-9]{6}\.[a-z0-9]{16}([^a-z0-9]|$)' /etc /var/lib; echo "grep $?"; rm `+planted)
	if strings.TrimSpace(out) != planted+"\ngrep 0" {
		w.t.Errorf("besides %s, with which it is tried, these files have what looks like a bootstrap token:\n%s", planted, out)
	}
}

// roleIsItsOwn takes the machine's credentials from instance metadata: STS and the cluster know it by them.
func (w *iam) roleIsItsOwn() {
	k := w.machineKeys(pageMachine, "muster-node-muster")
	id := w.machineAt(pageMachine)
	who, err := w.aws(w.as(k), "sts", "get-caller-identity", "--query", "Arn", "--output", "text")
	if err != nil || who != "arn:aws:sts::"+iamAccount+":assumed-role/muster-node-muster/"+id {
		w.t.Errorf("the machine is %q: %v", who, err)
	}
	w.becomes(k, "system:node:"+nodeAt(pageMachine))
}

// askSTS asks STS on a machine, with nothing but what the machine has: its role's credentials from instance metadata,
// and what AWS_CONFIG_FILE says. The secrets are on no command line.
const askSTS = `set -eu
said() { sed -n "s/^$1 = //p" "$AWS_CONFIG_FILE"; }
url=http://169.254.169.254/latest
token=$(curl -sSf -X PUT $url/api/token -H 'X-aws-ec2-metadata-token-ttl-seconds: 60')
answer=$(curl -sSf -H "X-aws-ec2-metadata-token: $token" $url/meta-data/iam/security-credentials/muster-node-muster | tr -d '\n')
field() { printf %s "$answer" | sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p"; }
printf 'user = "%s:%s"\nheader = "X-Amz-Security-Token: %s"\n' "$(field AccessKeyId)" "$(field SecretAccessKey)" "$(field Token)" |
curl -sS --max-time 10 -K - --cacert "$(said ca_bundle)" --aws-sigv4 "aws:amz:$(said region):$service" -d "$form" "$(said endpoint_url)/"`

// machineAsks has a machine and a pod reach STS and IAM without the host.
func (w *iam) machineAsks(*people) {
	ask := func(service, form string) string {
		out, talk := w.muster("exec", pageMachine, "--", "sh", "-c", "service="+service+"; form='"+form+"'; "+askSTS)
		return out + talk
	}
	id := w.machineAt(pageMachine)
	arn := "arn:aws:sts::" + iamAccount + ":assumed-role/muster-node-muster/" + id
	if got := ask("sts", "Action=GetCallerIdentity&Version=2011-06-15"); !strings.Contains(got, "<Arn>"+arn+"</Arn>") {
		w.t.Errorf("STS says to the machine: %s, want %s", got, arn)
	}
	// Its role has no policy for this: IAM knows the machine, and says so.
	if got := ask("iam", "Action=ListUsers&Version=2010-05-08"); !strings.Contains(got, "<Code>AccessDenied</Code>") || !strings.Contains(got, arn+" is not authorized to perform: iam:ListUsers") {
		w.t.Errorf("IAM says to the machine: %s", got)
	}
	// A policy that asks for the machine's address sees the machine's, not the relay's.
	const byAddress = `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "iam:ListUsers", "Resource": "*", "Condition": {"IpAddress": {"aws:SourceIp": "` + pageMachine + `"}}}]}`
	w.mustAWS(nil, "iam", "put-role-policy", "--role-name", "muster-node-muster", "--policy-name", "by-address", "--policy-document", byAddress)
	w.eventually("IAM answers the machine by its address", func() error {
		if got := ask("iam", "Action=ListUsers&Version=2010-05-08"); !strings.Contains(got, "<UserName>admin</UserName>") {
			return errors.New(got)
		}
		return nil
	})
	w.mustAWS(nil, "iam", "delete-role-policy", "--role-name", "muster-node-muster", "--policy-name", "by-address")

	// A token that the AWS CLI makes there is signed for that endpoint.
	k := w.machineKeys(pageMachine, "muster-node-muster")
	token, err := ekstoken.Sign(w.t.Context(), aws.Config{Region: "us-east-1", BaseEndpoint: aws.String("https://172.31.0.3"), Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: k.AccessKeyID, SecretAccessKey: k.SecretAccessKey, SessionToken: k.SessionToken}, nil
	})}, "muster", time.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	w.believed(token.Reveal(), "system:node:"+nodeAt(pageMachine))

	w.apply(workload)
	w.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=60s")
	out, talk := w.muster("exec", pageMachine, "--", "sh", "-c", `pid=$(pgrep -o -f '^/workload serve') || exit 99
nsenter --target "$pid" --net curl -sS --max-time 10 --cacert /etc/aws/ca.pem -d 'Action=GetCallerIdentity&Version=2011-06-15' https://172.31.0.3/`)
	if !strings.Contains(out, "<Code>MissingAuthenticationToken</Code>") {
		w.t.Errorf("a pod that trusts the account's authority hears %s%s", out, talk)
	}
}

// cutOff is how curl ends when nothing answers: it could not connect, it waited in vain, or the connection was reset.
var cutOff = regexp.MustCompile(`^curl (7|28|56)\n$`)

// podAsks asks for the node's credentials as a pod that has all it can have there: the network of a pod, and root's
// rights. The same questions are answered where they may be asked.
func (w *iam) podAsks(*people) {
	w.apply(workload)
	w.mustKubectl("rollout", "status", "daemonset/hello", "--timeout=60s")
	pod := w.mustKubectl("get", "pods", "-l", "app=hello", "--field-selector", "spec.nodeName="+nodeAt(pageMachine), "-o", "jsonpath={.items[0].metadata.name}")
	service := w.mustKubectl("get", "service", "hello", "-o", "jsonpath={.spec.clusterIP}")
	w.eventually("the pod reaches others", func() error {
		_, err := w.kubectl("exec", pod, "--", "/workload", "fetch", "http://"+service+"/")
		return err
	})
	const path = "http://169.254.169.254/latest/meta-data/iam/security-credentials/muster-node-muster"
	out, err := w.kubectl("exec", pod, "--", "/workload", "fetch", path)
	if err == nil || !strings.Contains(err.Error(), "connection reset by peer") && !strings.Contains(err.Error(), "Timeout") && !strings.Contains(err.Error(), "deadline exceeded") {
		w.t.Errorf("the pod is neither cut off nor left without an answer: %s, %v", out, err)
	}
	const ask = `curl -sS --max-time 3 -o "$file" -X PUT http://169.254.169.254/latest/api/token -H 'X-aws-ec2-metadata-token-ttl-seconds: 60'
echo "curl $?"; wc -c <"$file"; rm -f "$file"`
	asked := func(how string) string {
		out, _ := w.muster("exec", pageMachine, "--", "sh", "-c", `pid=$(pgrep -o -f '^/workload serve') || exit 99
file=$(mktemp); : >"$file"; `+how+ask)
		return out
	}
	if got := asked(""); !regexp.MustCompile(`^curl 0\n[1-9][0-9]+\n$`).MatchString(got) {
		w.t.Fatalf("on the machine one gets no token, so nothing is shown: %q", got)
	}
	got, ok := strings.CutSuffix(asked(`nsenter --target "$pid" --net `), "0\n")
	if !ok || !cutOff.MatchString(got) {
		w.t.Errorf("in the network of a pod one is neither cut off nor left without an answer: %q", got)
	}
	w.t.Logf("a pod that asks for a token of instance metadata: %s", strings.TrimSpace(got))
}

// refusedMachine has a machine join with a role that the cluster lets in by another id, as after a role was deleted and
// made again; then with no entry at all; then it is let in, and in the end its instance is gone.
func (w *iam) refusedMachine(p *people) {
	const arn = "arn:aws:iam::" + iamAccount + ":role/guests"
	w.mustAWS(nil, "iam", "create-role", "--role-name", "guests", "--assume-role-policy-document",
		`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}]}`)
	group := `{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {namespace: muster, name: guests}, spec: {name: guests, nodeRole: guests, scalingConfig: {desiredSize: 1}}}`
	entry := func(id string) string {
		return "{apiVersion: access.muster.dev/v1alpha1, kind: AccessEntry, metadata: {name: guests}, spec: {principalARN: '" + arn + "', type: EC2_LINUX" + id + "}}"
	}
	w.apply(entry(", principalID: AROAAAAAAAAAAAAAAAAAA"))
	w.apply(group, "--context=muster-management")
	w.statusSays("i-", "the cluster does not let the machine in", "rule principal-id", "AccessEntry guests", "AROAAAAAAAAAAAAAAAAAA")
	id := strings.Trim(w.mustKubectl("--context=muster-management", "get", "machines", "-l", "muster.dev/nodegroup=guests", "-o", "jsonpath={.items[*].metadata.name}"), " ")
	if nodes := w.mustKubectl("get", "nodes", "-o", "jsonpath={.items[*].spec.providerID}"); strings.Contains(nodes, id) {
		w.t.Errorf("the machine %s is a node: %s", id, nodes)
	}
	if events := w.mustKubectl("--context=muster-management", "get", "events", "-A", "-o", `jsonpath={range .items[*]}{.reason} {.regarding.name}{.involvedObject.name}{"\n"}{end}`); !anyLine(events, "Refused", id) {
		w.t.Errorf("no Event tells of it: %s", events)
	}
	w.mustKubectl("delete", "accessentry", "guests")
	w.statusSays(id, "rule no-entry", "no entry names "+arn, "make an access entry for it")
	w.apply(entry(""))
	node := w.mustKubectl("--context=muster-management", "get", "machine", id, "-o", "jsonpath={.status.nodeName}")
	w.nodeIsReady(node)
	var address string
	w.eventually("the machine is Ready", func() error {
		out, err := w.kubectl("--context=muster-management", "get", "machine", id, "-o", `jsonpath={.status.phase} {.status.addresses[?(@.type=="InternalIP")].address}`)
		phase, rest, _ := strings.Cut(out, " ")
		if address = rest; err == nil && phase != "Ready" {
			err = errors.New(out)
		}
		return err
	})
	token := w.token(w.machineKeys(address, "guests"), "muster")
	if who, err := w.whoami(w.t.Context(), token); err != nil || who.Username != "system:node:"+node {
		w.t.Errorf("the machine is %q, not %s: %v", who.Username, node, err)
	}
	w.letInNoMore(id, node, arn, token, entry(""))
	w.muster("delete", "nodegroup", "guests")
	w.eventually("the machine is gone", func() error {
		left, err := w.kubectl("--context=muster-management", "get", "machines", "-l", "muster.dev/nodegroup=guests", "-o", "name")
		if err == nil && left != "" {
			err = errors.New(left)
		}
		return err
	})
	why := w.refused("a token of an instance that is gone is refused", token, 403, "access-key")
	if !strings.Contains(why.Saw, id) {
		w.t.Errorf("the instance %s is not named: %+v", id, why)
	}
	p.later = append(p.later, w.forgets("an instance that is gone", token))
}

// letInNoMore takes the access entry of a machine that is Ready away, and gives it back.
func (w *iam) letInNoMore(id, node, arn, token, entry string) {
	w.t.Helper()
	w.believed(token, "system:node:"+node)
	w.mustKubectl("delete", "accessentry", "guests")
	w.refused("a token of a Ready machine whose access entry is gone is refused", token, 403, "no-entry")
	w.statusSays(id, "the cluster does not let the machine in", "rule no-entry", "no entry names "+arn, "make an access entry for it")
	w.apply(entry)
	w.eventually("a token of the machine is good again", func() error {
		code, user, why, err := w.review(w.t.Context(), token)
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("the answer is %d, user %q, %+v", code, user.Username, why)
		}
		return err
	})
	w.eventually("muster status says that all is well again", func() error {
		out, talk, err := w.try("status")
		if err == nil && strings.Contains(out, "does not let the machine in") {
			err = errors.New("it is not")
		}
		if err != nil {
			err = fmt.Errorf("%w:\n%s%s", err, out, talk)
		}
		return err
	})
	w.nodeIsReady(node)
}

// statusSays waits for a line of `muster status` that has all parts.
func (w *iam) statusSays(parts ...string) {
	w.t.Helper()
	took := w.eventually("muster status says "+strings.Join(parts, ", "), func() error {
		out, talk, err := w.try("status")
		if err == nil || !anyLine(out+talk, parts...) {
			return errors.Join(err, fmt.Errorf("it says:\n%s%s", out, talk))
		}
		return nil
	})
	w.t.Logf("muster status says so after %s", took.Round(100*time.Millisecond))
}
