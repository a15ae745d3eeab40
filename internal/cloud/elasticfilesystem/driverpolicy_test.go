// SPDX-License-Identifier: Apache-2.0

package elasticfilesystem

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/iam/iampolicy"
)

// policyGate lets its caller do what a policy allows.
type policyGate struct{ document iampolicy.Document }

func (policyGate) Admit(*http.Request, string, []byte) (awsfront.Caller, error) {
	return awsfronttest.Caller{}, nil
}

func (policyGate) Unsigned(*http.Request, string, string) (awsfront.Caller, error) {
	return nil, iamfault.Errorf(iamfault.MissingAuthenticationToken, "no")
}

func (g policyGate) Authorize(c awsfront.Caller, action string, about awsfront.Target) error {
	caller := iampolicy.Caller{ARN: c.ARN(), Account: c.Account(), ID: "AIDAEXAMPLE"}
	all := iampolicy.NewContext(caller, iampolicy.Facts{})
	maps.Copy(all, about.Conditions)
	if g.document.Evaluate(iampolicy.Request{Caller: caller, Action: action, Resource: about.Resource, Context: all}).Verdict != iampolicy.Allow {
		return iamfault.Errorf(iamfault.AccessDenied, "not authorized to perform %s on %s", action, about.Resource)
	}
	return nil
}

// AWS's policy for the driver allows what the driver does: access points with its tag, and no others.
func TestTheDriversPolicy(t *testing.T) {
	w := newWorld(t)
	id := w.system("one")
	own := w.make("POST /access-points", `{"ClientToken":"a","FileSystemId":"`+id+`","Tags":[{"Key":"efs.csi.aws.com/cluster","Value":"true"}]}`, "AccessPointId")
	other := w.make("POST /access-points", `{"ClientToken":"b","FileSystemId":"`+id+`"}`, "AccessPointId")

	var gate policyGate
	for _, p := range iampolicy.AWSManaged() {
		if p.Name == "AmazonEFSCSIDriverPolicy" {
			document, err := iampolicy.Parse(iampolicy.Managed, p.Versions[0].Document)
			if err != nil {
				t.Fatal(err)
			}
			gate.document = document
		}
	}
	front, err := awsfront.New(awsfront.Config{Gate: gate})
	if err != nil {
		t.Fatal(err)
	}
	if err := Register(front, Config{Account: awsresource.Account{Management: w.api, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1"}, Used: func(context.Context, string) (int64, error) { return 0, nil }}); err != nil {
		t.Fatal(err)
	}
	if w.handler, err = front.Handler("elasticfilesystem"); err != nil {
		t.Fatal(err)
	}
	w.ask("GET /file-systems?FileSystemId="+id, "", 200)
	w.ask("GET /mount-targets?FileSystemId="+id, "", 200)
	w.ask("GET /access-points?FileSystemId="+id, "", 200)
	tagged := func(token string, tags ...string) string {
		return `{"ClientToken":"` + token + `","FileSystemId":"` + id + `","Tags":[` + strings.Join(tags, ",") + `]}`
	}
	const its, ours = `{"Key":"efs.csi.aws.com/cluster","Value":"true"}`, `{"Key":"team","Value":"a"}`
	w.ask("POST /access-points", tagged("c", its), 200)
	w.ask("POST /access-points", tagged("d"), 403)
	w.ask("POST /access-points", tagged("e", its, ours), 403)
	w.ask("POST /resource-tags/"+other, `{"Tags":[`+its+`]}`, 403)
	w.ask("DELETE /access-points/"+own, "", 204)
	w.ask("DELETE /access-points/"+other, "", 403)
	w.ask("DELETE /file-systems/"+id, "", 403)
	w.ask("POST /file-systems", `{"CreationToken":"two"}`, 403)
}
