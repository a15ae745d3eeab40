// SPDX-License-Identifier: Apache-2.0

package ssm

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfront/awsfronttest"
	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/cloud/awsresource"
)

func TestParameters(t *testing.T) {
	g := &awsfronttest.Gate{}
	front := awsfronttest.New(t, g, nil)
	if err := Register(front, awsresource.Account{Pages: nexttoken.NewSealer([nexttoken.KeySize]byte{1}), Region: "eu-west-1"}); err != nil {
		t.Fatal(err)
	}
	if err := front.Check(); err != nil {
		t.Error(err)
	}
	for _, problem := range awsactions.Problems(func(service, action string) bool {
		if service == "ssm" {
			return front.Answers(service, action)
		}
		a, _ := awsactions.NewList().Find(service, action)
		return a.Mark != awsactions.Refused && !awsactions.NewList().NotYet(service, action)
	}) {
		t.Error(problem)
	}
	handler, err := front.Handler(service)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(action, body string, status int, has ...string) string {
		t.Helper()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
		r.Header.Set("X-Amz-Target", "AmazonSSM."+action)
		r.Header.Set("Content-Type", "application/x-amz-json-1.1")
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, r)
		text := answer.Body.String()
		if answer.Code != status {
			t.Errorf("%s %s: %d %s, want %d", action, body, answer.Code, text, status)
		}
		for _, part := range has {
			if !strings.Contains(text, part) {
				t.Errorf("%s %s: %s, want %s", action, body, text, part)
			}
		}
		return text
	}
	newest := ami.All()[len(ami.All())-1]
	path := ami.Root + newest.Kubernetes + "/amazon-linux-2023/x86_64/standard/recommended"
	public := "arn:aws:ssm:eu-west-1::parameter" + path
	ask("GetParameter", `{"Name":"`+path+`/image_id"}`, 200, `"Value":"`+newest.ID+`"`, `"Type":"String"`, `"Version":1`, `"ARN":"`+public+`/image_id"`, `"DataType":"aws:ec2:image"`, `"LastModifiedDate":1`)
	ask("GetParameter", `{"Name":"`+path+`/release_version:1","WithDecryption":true}`, 200, `"Value":"`+newest.ReleaseVersion+`"`, `"Selector":":1"`, `"DataType":"text"`)
	ask("GetParameter", `{"Name":"`+public+`/image_id"}`, 200, newest.ID)
	ask("GetParameter", `{"Name":"`+path+`/image_id:2"}`, 400, "ParameterVersionNotFound")
	ask("GetParameter", `{"Name":"/mine"}`, 400, `"__type":"ParameterNotFound"`, "Parameter /mine not found.")
	ask("GetParameters", `{"Names":["`+path+`/image_id","/mine","`+path+`/image_name"]}`, 200, newest.ID, newest.Name, `"InvalidParameters":["/mine"]`)
	ask("GetParameters", `{"Names":[]}`, 400, "ValidationException")
	ask("GetParametersByPath", `{"Path":"`+path+`/"}`, 200, "image_id", "image_name", "release_version")
	if text := ask("GetParametersByPath", `{"Path":"/aws/service/eks"}`, 200); strings.Contains(text, "image_id") {
		t.Errorf("not recursive: %s", text)
	}
	page := ask("GetParametersByPath", `{"Path":"/aws/service/eks","Recursive":true,"MaxResults":3}`, 200, `"NextToken":"`)
	_, token, _ := strings.Cut(page, `"NextToken":"`)
	token, _, _ = strings.Cut(token, `"`)
	if next := ask("GetParametersByPath", `{"Path":"/aws/service/eks","Recursive":true,"MaxResults":3,"NextToken":"`+token+`"}`, 200); next == page {
		t.Error("the second page is the first")
	}
	ask("GetParametersByPath", `{"Path":"aws"}`, 400, "ValidationException")
	ask("GetParametersByPath", `{"Path":"/aws","ParameterFilters":[{"Key":"Type"}]}`, 400, "does not support ParameterFilters")
	asked := strings.Join(g.Asked, "\n")
	for _, want := range []string{"ssm:GetParameter " + public + "/image_id", "ssm:GetParameter arn:aws:ssm:eu-west-1:000000000000:parameter/mine", "ssm:GetParametersByPath arn:aws:ssm:eu-west-1::parameter/aws/service/eks ssm:recursive=true"} {
		if !strings.Contains(asked, want) {
			t.Errorf("IAM is not asked %s:\n%s", want, asked)
		}
	}
	g.Denies = true
	ask("GetParameter", `{"Name":"`+path+`/image_id"}`, 400, "AccessDeniedException")
	ask("GetParameters", `{"Names":["`+path+`"]}`, 400, "AccessDeniedException")
	ask("GetParametersByPath", `{"Path":"`+path+`"}`, 400, "AccessDeniedException")
}
