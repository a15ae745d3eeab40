// SPDX-License-Identifier: Apache-2.0

package kms

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
)

const (
	account    = "000000000000"
	testRegion = "eu-west-1"
	keyPrefix  = "arn:aws:kms:eu-west-1:000000000000:key/"
	noKey      = "00000000-0000-0000-0000-00000000dead"
)

// world is a front with the actions over a management plane in memory, at a time that a test moves.
type world struct {
	t       *testing.T
	gate    *awsfronttest.Gate
	api     client.Client
	front   *awsfront.Front
	handler http.Handler
	now     time.Time
}

func newWorld(t *testing.T) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, gate: &awsfronttest.Gate{}, now: time.Unix(1800000000, 0)}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(awsfronttest.Numbered(func(_ int) time.Time { return w.now })).Build()
	w.front = awsfronttest.New(t, w.gate, func() time.Time { return w.now })
	var err error
	if err := Register(w.front, awsresource.Account{Management: w.api, Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: testRegion}); err != nil {
		t.Fatal(err)
	}
	if w.handler, err = w.front.Handler(service); err != nil {
		t.Fatal(err)
	}
	return w
}

// ask sends a request, and compares what comes: a status, and parts of the body.
func (w *world) ask(action, body string, status int, has ...string) string {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "TrentService."+action)
	answer := httptest.NewRecorder()
	w.handler.ServeHTTP(answer, r)
	text := answer.Body.String()
	if answer.Code != status {
		w.t.Errorf("%s %s: %d %s, want %d", action, body, answer.Code, text, status)
	}
	for _, part := range has {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s %s: %s, want %s", action, body, text, part)
		}
	}
	return text
}

// key makes a key and returns its id.
func (w *world) key(body string) string {
	w.t.Helper()
	var made struct{ KeyMetadata struct{ KeyId string } }
	if err := json.Unmarshal([]byte(w.ask("CreateKey", body, 200)), &made); err != nil || made.KeyMetadata.KeyId == "" {
		w.t.Fatal(made, err)
	}
	return made.KeyMetadata.KeyId
}

// of is the body that names a key, with more members.
func of(id string, more ...string) string {
	return `{"KeyId":` + strconv.Quote(id) + strings.Join(append([]string{""}, more...), ",") + `}`
}

func TestTheActionsFitTheTable(t *testing.T) {
	w := newWorld(t)
	if err := w.front.Check(); err != nil {
		t.Error(err)
	}
	fine := func(service, action string) bool {
		if service == "kms" {
			return w.front.Answers(service, action)
		}
		a, _ := awsactions.NewList().Find(service, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(service, action)
	}
	for _, problem := range awsactions.Problems(fine) {
		t.Error(problem)
	}
}

// What Terraform's aws_kms_key and aws_kms_alias do in their lives.
func TestLifeOfAKey(t *testing.T) {
	w := newWorld(t)
	id := w.key(`{"Description":"secrets","Tags":[{"TagKey":"team","TagValue":"a"}],"BypassPolicyLockoutSafetyCheck":false,"MultiRegion":false}`)
	w.ask("DescribeKey", of(id), 200, `"Arn":"`+keyPrefix+id+`"`, `"AWSAccountId":"000000000000"`, `"Enabled":true`, `"KeyState":"Enabled"`, `"Description":"secrets"`,
		`"KeyUsage":"ENCRYPT_DECRYPT"`, `"KeyManager":"CUSTOMER"`, `"KeySpec":"SYMMETRIC_DEFAULT"`, `"CustomerMasterKeySpec":"SYMMETRIC_DEFAULT"`, `"Origin":"AWS_KMS"`,
		`"EncryptionAlgorithms":["SYMMETRIC_DEFAULT"]`, `"MultiRegion":false`, `"CreationDate":1800000000`)
	w.ask("DescribeKey", of(keyPrefix+id), 200, id)
	w.ask("GetKeyPolicy", of(id, `"PolicyName":"default"`), 200, `arn:aws:iam::000000000000:root`, `"PolicyName":"default"`)
	w.ask("GetKeyRotationStatus", of(id), 200, `"KeyRotationEnabled":false`)
	w.ask("ListResourceTags", of(id), 200, `{"TagKey":"team","TagValue":"a"}`, `"Truncated":false`)

	w.ask("EnableKeyRotation", of(id, `"RotationPeriodInDays":90`), 200)
	w.ask("GetKeyRotationStatus", of(id), 200, `"KeyRotationEnabled":true`, `"RotationPeriodInDays":90`, `"NextRotationDate":1807776000`)
	w.ask("EnableKeyRotation", of(id), 200) // which changes nothing
	w.ask("GetKeyRotationStatus", of(id), 200, `"RotationPeriodInDays":90`)
	w.ask("DisableKeyRotation", of(id), 200)
	w.ask("EnableKeyRotation", of(id), 200)
	w.ask("GetKeyRotationStatus", of(id), 200, `"RotationPeriodInDays":365`)
	w.ask("UpdateKeyDescription", of(id, `"Description":"other"`), 200)
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"kms:*","Resource":"*"}]}`
	w.ask("PutKeyPolicy", of(id, `"Policy":`+strconv.Quote(policy), `"BypassPolicyLockoutSafetyCheck":true`), 200)
	w.ask("GetKeyPolicy", of(id), 200, strings.ReplaceAll(policy, `"`, `\"`))
	w.ask("TagResource", of(id, `"Tags":[{"TagKey":"b","TagValue":"2"}]`), 200)
	w.ask("UntagResource", of(id, `"TagKeys":["team"]`), 200)
	w.ask("ListResourceTags", of(id), 200, `"Tags":[{"TagKey":"b","TagValue":"2"}]`)
	w.ask("DisableKey", of(id), 200)
	w.ask("DescribeKey", of(id), 200, `"Enabled":false`, `"KeyState":"Disabled"`, `"Description":"other"`)
	w.ask("EnableKeyRotation", of(id), 400, "DisabledException")
	w.ask("EnableKey", of(id), 200)

	w.ask("CreateAlias", `{"AliasName":"alias/eks/blue","TargetKeyId":"`+keyPrefix+id+`"}`, 200)
	w.ask("CreateAlias", `{"AliasName":"alias/eks/blue","TargetKeyId":"`+id+`"}`, 400, "AlreadyExistsException")
	w.ask("DescribeKey", of("alias/eks/blue"), 200, id)
	w.ask("DescribeKey", of("arn:aws:kms:eu-west-1:000000000000:alias/eks/blue"), 200, id)
	w.ask("ListAliases", of(id), 200, `"AliasName":"alias/eks/blue"`, `"AliasArn":"arn:aws:kms:eu-west-1:000000000000:alias/eks/blue"`, `"TargetKeyId":"`+id+`"`)
	other := w.key(`{}`)
	w.ask("ListAliases", of(other), 200, `"Aliases":[]`)
	w.ask("UpdateAlias", `{"AliasName":"alias/eks/blue","TargetKeyId":"`+other+`"}`, 200)
	w.ask("DescribeKey", of("alias/eks/blue"), 200, other)
	w.ask("DeleteAlias", `{"AliasName":"alias/eks/blue"}`, 200)
	w.ask("DeleteAlias", `{"AliasName":"alias/eks/blue"}`, 400, "NotFoundException", "Alias arn:aws:kms:eu-west-1:000000000000:alias/eks/blue is not found.")
}

// A key that is to be deleted can do little, can be kept, and is gone once its time has come.
func TestDeletion(t *testing.T) {
	w := newWorld(t)
	id := w.key(`{}`)
	w.ask("CreateAlias", `{"AliasName":"alias/a","TargetKeyId":"`+id+`"}`, 200)
	w.ask("ScheduleKeyDeletion", of(id, `"PendingWindowInDays":6`), 400, "ValidationException")
	w.ask("ScheduleKeyDeletion", of(id, `"PendingWindowInDays":7`), 200, `"KeyId":"`+keyPrefix+id+`"`, `"KeyState":"PendingDeletion"`, `"PendingWindowInDays":7`, `"DeletionDate":1800604800`)
	w.ask("DescribeKey", of(id), 200, `"KeyState":"PendingDeletion"`, `"Enabled":false`, `"DeletionDate":1800604800`)
	w.ask("GetKeyPolicy", of(id), 200)
	w.ask("GetKeyRotationStatus", of(id), 200)
	for _, action := range []string{"ScheduleKeyDeletion", "EnableKey", "DisableKey", "EnableKeyRotation", "DisableKeyRotation"} {
		w.ask(action, of(id), 400, "KMSInvalidStateException", keyPrefix+id+" is pending deletion.")
	}
	w.ask("TagResource", of(id, `"Tags":[]`), 400, "KMSInvalidStateException")
	w.ask("UntagResource", of(id, `"TagKeys":[]`), 400, "KMSInvalidStateException")
	w.ask("UpdateKeyDescription", of(id, `"Description":""`), 400, "KMSInvalidStateException")
	w.ask("CreateAlias", `{"AliasName":"alias/b","TargetKeyId":"`+id+`"}`, 400, "KMSInvalidStateException")
	w.ask("CancelKeyDeletion", of(id), 200, keyPrefix+id)
	w.ask("CancelKeyDeletion", of(id), 400, "is not pending deletion.")
	w.ask("DescribeKey", of(id), 200, `"KeyState":"Disabled"`)

	w.ask("ScheduleKeyDeletion", of(id), 200, `"PendingWindowInDays":30`)
	w.now = w.now.Add(30*day - time.Second)
	w.ask("DescribeKey", of(id), 200)
	w.now = w.now.Add(time.Second)
	w.ask("DescribeKey", of(id), 400, "NotFoundException", "Key '"+keyPrefix+id+"' does not exist")
	w.ask("CancelKeyDeletion", of(id), 400)
	w.ask("DescribeKey", of("alias/a"), 400)
	next := w.key(`{}`)
	w.ask("CreateAlias", `{"AliasName":"alias/a","TargetKeyId":"`+next+`"}`, 200)
	w.ask("ListKeys", `{}`, 200, `"Keys":[{"KeyId":"`+next+`"`)
	var left v1alpha1.AWSRecordList
	if err := w.api.List(t.Context(), &left); err != nil || len(left.Items) != 2 {
		t.Errorf("%d records are left: %v", len(left.Items), err)
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	id := w.key(`{}`)
	long := strings.Repeat("x", 8193)
	for _, c := range []struct {
		action, body, code string
		status             int
	}{
		{"CreateKey", `{"KeySpec":"RSA_2048"}`, unsupported, 400},
		{"CreateKey", `{"CustomerMasterKeySpec":"ECC_NIST_P256"}`, unsupported, 400},
		{"CreateKey", `{"KeyUsage":"SIGN_VERIFY"}`, unsupported, 400},
		{"CreateKey", `{"Origin":"EXTERNAL"}`, unsupported, 400},
		{"CreateKey", `{"XksKeyId":"x"}`, unsupported, 400},
		{"CreateKey", `{"Description":"` + long + `"}`, validation, 400},
		{"CreateKey", `{"Policy":""}`, malformedPolicy, 400},
		{"CreateKey", `{"Policy":"[]"}`, malformedPolicy, 400},
		{"CreateKey", `{"Policy":"{\"Version\":\"2020-01-01\",\"Statement\":{\"Effect\":\"Allow\",\"Principal\":\"*\",\"Action\":\"kms:*\",\"Resource\":\"*\"}}"}`, malformedPolicy, 400},
		{"CreateKey", `{"Policy":"{\"Statement\":[]}"}`, malformedPolicy, 400},
		{"CreateKey", `{"Policy":"{\"Statement\":{\"Effect\":\"Allow\",\"Action\":\"kms:*\"}}"}`, malformedPolicy, 400},
		{"CreateKey", `{"Policy":"{\"Statement\":{\"Effect\":\"Maybe\",\"Principal\":\"*\",\"Action\":\"kms:*\"}}"}`, malformedPolicy, 400},
		{"CreateKey", `{"Tags":[{"TagKey":"aws:x","TagValue":"1"}]}`, "TagException", 400},
		{"CreateKey", `{"Tags":[{"TagKey":"x","TagValue":"1"},{"TagKey":"x","TagValue":"2"}]}`, "TagException", 400},
		{"DescribeKey", `{}`, validation, 400},
		{"DescribeKey", of(noKey), notFound, 400},
		{"DescribeKey", of("Not An Id"), notFound, 400},
		{"DescribeKey", of("arn:aws:kms:eu-west-1:111122223333:key/" + id), notFound, 400},
		{"DescribeKey", of("arn:aws:kms:us-east-1:000000000000:key/" + id), notFound, 400},
		{"DescribeKey", of("arn:aws:ec2:eu-west-1:000000000000:key/" + id), invalidArn, 400},
		{"DescribeKey", of(id, `"GrantTokens":["x"]`), unsupported, 400},
		{"EnableKey", of("alias/none"), notFound, 400},
		{"GetKeyPolicy", of(id, `"PolicyName":"other"`), notFound, 400},
		{"PutKeyPolicy", of(id, `"Policy":"x"`), malformedPolicy, 400},
		{"EnableKeyRotation", of(id, `"RotationPeriodInDays":89`), validation, 400},
		{"CreateAlias", `{"AliasName":"blue","TargetKeyId":"` + id + `"}`, validation, 400},
		{"CreateAlias", `{"AliasName":"alias/","TargetKeyId":"` + id + `"}`, validation, 400},
		{"CreateAlias", `{"AliasName":"alias/a b","TargetKeyId":"` + id + `"}`, validation, 400},
		{"CreateAlias", `{"AliasName":"alias/aws/ebs","TargetKeyId":"` + id + `"}`, "NotAuthorizedException", 400},
		{"CreateAlias", `{"AliasName":"alias/b","TargetKeyId":"alias/c"}`, validation, 400},
		{"CreateAlias", `{"AliasName":"alias/b","TargetKeyId":"` + noKey + `"}`, notFound, 400},
		{"UpdateAlias", `{"AliasName":"alias/b","TargetKeyId":"` + id + `"}`, notFound, 400},
		{"ListKeys", `{"Limit":0}`, validation, 400},
		{"ListKeys", `{"Marker":"x"}`, "InvalidMarkerException", 400},
		{"Encrypt", of(id, `"Plaintext":"eA=="`), unsupported, 400},
		{"CreateGrant", of(id, `"GranteePrincipal":"x","Operations":["Decrypt"]`), unsupported, 400},
		{"Decrypted", `{}`, "UnknownOperationException", 400},
	} {
		w.ask(c.action, c.body, c.status, c.code)
	}
}

func TestPages(t *testing.T) {
	w := newWorld(t)
	want := map[string]bool{}
	for range 5 {
		want[w.key(`{}`)] = true
	}
	marker, pages := "", 0
	for {
		var page struct {
			Keys       []struct{ KeyId string }
			NextMarker string
			Truncated  bool
		}
		if err := json.Unmarshal([]byte(w.ask("ListKeys", `{"Limit":2`+marker+`}`, 200)), &page); err != nil {
			t.Fatal(err)
		}
		for _, k := range page.Keys {
			delete(want, k.KeyId)
		}
		if pages++; !page.Truncated || pages > 5 {
			break
		}
		marker = `,"Marker":"` + page.NextMarker + `"`
	}
	if pages != 3 || len(want) != 0 {
		t.Errorf("%d pages without %v", pages, want)
	}
}

// IAM is asked about keys and aliases, with their condition keys, and nothing happens that it denies.
func TestRights(t *testing.T) {
	w := newWorld(t)
	id := w.key(`{"Tags":[{"TagKey":"team","TagValue":"a"}]}`)
	w.ask("CreateAlias", `{"AliasName":"alias/a","TargetKeyId":"`+id+`"}`, 200)
	const conditions = " aws:resourcetag/team=a kms:calleraccount=000000000000 kms:keyorigin=AWS_KMS kms:keyspec=SYMMETRIC_DEFAULT kms:keyusage=ENCRYPT_DECRYPT kms:multiregion=false"
	w.gate.Asked = nil
	w.ask("DescribeKey", of("alias/a"), 200)
	w.ask("ScheduleKeyDeletion", of(noKey, `"PendingWindowInDays":9`), 400)
	w.ask("DeleteAlias", `{"AliasName":"alias/a"}`, 200)
	w.ask("DescribeKey", of("alias/a"), 400)
	w.ask("CreateKey", `{"Tags":[{"TagKey":"k","TagValue":"v"}],"MultiRegion":true}`, 200, `"KeyId":"mrk-`, `"MultiRegionKeyType":"PRIMARY"`)
	for i, want := range []string{
		"kms:DescribeKey " + keyPrefix + id + conditions + " kms:requestalias=alias/a kms:resourcealiases=alias/a",
		"kms:ScheduleKeyDeletion " + keyPrefix + noKey + " kms:calleraccount=000000000000 kms:schedulekeydeletionpendingwindowindays=9",
		"kms:DeleteAlias arn:aws:kms:eu-west-1:000000000000:alias/a kms:calleraccount=000000000000",
		"kms:DeleteAlias " + keyPrefix + id + conditions + " kms:requestalias=alias/a kms:resourcealiases=alias/a",
		"kms:DescribeKey " + keyPrefix + "* kms:calleraccount=000000000000 kms:requestalias=alias/a",
		"kms:CreateKey * aws:requesttag/k=v aws:tagkeys=k kms:calleraccount=000000000000 kms:keyorigin=AWS_KMS kms:keyspec=SYMMETRIC_DEFAULT kms:keyusage=ENCRYPT_DECRYPT kms:multiregion=true",
	} {
		if i >= len(w.gate.Asked) || w.gate.Asked[i] != want {
			t.Errorf("asked %d:\n%s\nwant\n%s", i, strings.Join(w.gate.Asked[min(i, len(w.gate.Asked)):min(i+1, len(w.gate.Asked))], ""), want)
		}
	}

	w.ask("CreateAlias", `{"AliasName":"alias/a","TargetKeyId":"`+id+`"}`, 200)
	before := w.everything()
	w.gate.Denies = true
	for action, body := range map[string]string{
		"CreateKey": `{}`, "DescribeKey": of(id), "ListKeys": `{}`, "UpdateKeyDescription": of(id, `"Description":"x"`), "EnableKey": of(id), "DisableKey": of(id),
		"GetKeyPolicy": of(id), "PutKeyPolicy": of(id, `"Policy":"{}"`), "GetKeyRotationStatus": of(id), "EnableKeyRotation": of(id), "DisableKeyRotation": of(id),
		"ScheduleKeyDeletion": of(id), "CancelKeyDeletion": of(id), "ListResourceTags": of(id), "TagResource": of(id, `"Tags":[]`), "UntagResource": of(id, `"TagKeys":[]`),
		"CreateAlias": `{"AliasName":"alias/b","TargetKeyId":"` + id + `"}`, "ListAliases": `{}`, "UpdateAlias": `{"AliasName":"alias/a","TargetKeyId":"` + id + `"}`,
		"DeleteAlias": `{"AliasName":"alias/a"}`,
	} {
		w.ask(action, body, 400, "AccessDeniedException")
	}
	if after := w.everything(); after != before {
		t.Errorf("changed:\n%s\n%s", before, after)
	}
}

func (w *world) everything() string {
	w.t.Helper()
	var all v1alpha1.AWSRecordList
	if err := w.api.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	text, err := json.Marshal(all)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func TestCheck(t *testing.T) {
	w := newWorld(t)
	id, disabled, pending := w.key(`{}`), w.key(`{}`), w.key(`{}`)
	w.ask("DisableKey", of(disabled), 200)
	w.ask("ScheduleKeyDeletion", of(pending), 200)
	check := Check(w.api, testRegion, func() time.Time { return w.now })
	for name, want := range map[string]string{
		keyPrefix + id:       "",
		keyPrefix + disabled: "is Disabled: it must be Enabled",
		keyPrefix + pending:  "is PendingDeletion: it must be Enabled",
		keyPrefix + noKey:    "there is no key",
		id:                   "is not the ARN of a KMS key",
		"arn:aws:kms:eu-west-1:000000000000:alias/a":       "is not the ARN of a KMS key",
		"arn:aws:kms:eu-west-1:111122223333:key/" + id:     "is not of this account",
		"arn:aws:kms:us-east-1:000000000000:key/" + id:     "is not of this account",
		"arn:aws:secrets:eu-west-1:000000000000:key/" + id: "is not the ARN of a KMS key",
	} {
		err := check(t.Context(), account, name)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
