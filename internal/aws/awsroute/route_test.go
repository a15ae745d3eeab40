// SPDX-License-Identifier: Apache-2.0

package awsroute

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
)

const (
	form   = "application/x-www-form-urlencoded; charset=utf-8"
	json11 = "application/x-amz-json-1.1"
)

func sent(method, path, query string, header map[string][]string, body []byte) awsshape.Request {
	return awsshape.Request{Method: method, Path: path, Query: query, Header: header, Body: body}
}

// signed are the headers of a request that is signed for a service.
func signed(service, contentType, target string) map[string][]string {
	header := map[string][]string{
		"Authorization": {"AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261122/us-east-1/" + service + "/aws4_request, SignedHeaders=host;x-amz-date, Signature=" + strings.Repeat("0", 64)},
		"X-Amz-Date":    {"20261122T180000Z"},
	}
	if contentType != "" {
		header["Content-Type"] = []string{contentType}
	}
	if target != "" {
		header["X-Amz-Target"] = []string{target}
		header["Authorization"][0] = strings.Replace(header["Authorization"][0], "x-amz-date", "x-amz-date;x-amz-target", 1)
	}
	return header
}

const presigned = "Action=GetCallerIdentity&Version=2011-06-15&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20261122%2Fus-east-1%2Fsts%2Faws4_request" +
	"&X-Amz-Date=20261122T180000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host%3Bx-k8s-aws-id&X-Amz-Signature="

func TestUnsigned(t *testing.T) {
	for name, c := range map[string]struct {
		request awsshape.Request
		want    string
	}{
		"ec2":         {sent("POST", "/", "", map[string][]string{"Content-Type": {form}}, []byte("Action=DescribeInstances&Version=2016-11-15")), "ec2"},
		"ec2 by GET":  {sent("GET", "/", "Action=DescribeInstances&Version=2016-11-15", nil, nil), "ec2"},
		"autoscaling": {sent("POST", "/", "", map[string][]string{"Content-Type": {form}}, []byte("Action=DescribeTags&Version=2011-01-01")), "autoscaling"},
		"sts":         {sent("POST", "/", "", map[string][]string{"Content-Type": {form}}, []byte("Action=GetCallerIdentity&Version=2011-06-15")), "sts"},
		"kms":         {sent("POST", "/", "", map[string][]string{"Content-Type": {json11}, "X-Amz-Target": {"TrentService.ListKeys"}}, nil), "kms"},
		"eks":         {sent("GET", "/clusters/blue", "", nil, nil), "eks"},
		"efs":         {sent("GET", "/2015-02-01/file-systems", "", nil, nil), "elasticfilesystem"},
		"nobody's":    {sent("GET", "/favicon.ico", "", nil, nil), ""},
		"the root":    {sent("GET", "/", "", nil, nil), ""},
	} {
		if got := Unsigned(c.request); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestRoutes(t *testing.T) {
	action := func(name, version string) []byte {
		return []byte(url.Values{"Action": {name}, "AAction": {"x"}, "Version": {version}, "X": {"Action=y"}}.Encode())
	}
	for name, c := range map[string]struct {
		request awsshape.Request
		want    string // service, action, protocol
		outcome string // "" for an action that is answered, or code and status
	}{
		"sts":                     {sent("POST", "/", "", signed("sts", form, ""), action("GetCallerIdentity", "2011-06-15")), "sts GetCallerIdentity query", ""},
		"iam":                     {sent("POST", "/", "", signed("iam", form, ""), action("CreateRole", "2010-05-08")), "iam CreateRole query", ""},
		"a presigned request":     {sent("GET", "/", presigned+strings.Repeat("0", 64), nil, nil), "sts GetCallerIdentity query", ""},
		"ec2":                     {sent("POST", "/", "", signed("ec2", form, ""), action("CreateVpc", "2016-11-15")), "ec2 CreateVpc ec2query", ""},
		"ec2, refused":            {sent("POST", "/", "", signed("ec2", form, ""), action("CreateFlowLogs", "2016-11-15")), "ec2 CreateFlowLogs ec2query", "UnsupportedOperation 400"},
		"ec2, unknown":            {sent("POST", "/", "", signed("ec2", form, ""), action("MakeCoffee", "2016-11-15")), "ec2 MakeCoffee ec2query", "InvalidAction 400"},
		"ec2, no action":          {sent("POST", "/", "", signed("ec2", form, ""), nil), "ec2  ec2query", "MissingAction 400"},
		"another service's":       {sent("POST", "/", "", signed("ec2", form, ""), action("CreateRole", "2010-05-08")), "ec2 CreateRole ec2query", "InvalidAction 400"},
		"autoscaling":             {sent("POST", "/", "", signed("autoscaling", form, ""), action("SetDesiredCapacity", "2011-01-01")), "autoscaling SetDesiredCapacity query", ""},
		"eks":                     {sent("GET", "/clusters", "include=all", signed("eks", "", ""), nil), "eks ListClusters restjson", ""},
		"eks, refused":            {sent("DELETE", "/clusters/a/capabilities/b", "", signed("eks", "", ""), nil), "eks DeleteCapability restjson", "InvalidRequestException 400"},
		"eks, no such path":       {sent("GET", "/nowhere", "", signed("eks", "", ""), nil), "eks  restjson", "UnknownOperationException 404"},
		"eks-auth":                {sent("POST", "/clusters/a/assume-role-for-pod-identity", "", signed("eks-auth", "", ""), nil), "eks-auth AssumeRoleForPodIdentity restjson", ""},
		"eks-auth's path for eks": {sent("POST", "/clusters/a/assume-role-for-pod-identity", "", signed("eks", "", ""), nil), "eks  restjson", "UnknownOperationException 404"},
		"ssm":                     {sent("POST", "/", "", signed("ssm", json11, "AmazonSSM.GetParameter"), nil), "ssm GetParameter awsjson1.1", ""},
		"kms, refused":            {sent("POST", "/", "", signed("kms", json11, "TrentService.Encrypt"), nil), "kms Encrypt awsjson1.1", "UnsupportedOperationException 400"},
		"logs, unknown":           {sent("POST", "/", "", signed("logs", json11, "Logs_20140328.StartLiveTail"), nil), "logs StartLiveTail awsjson1.1", "UnknownOperationException 400"},
		"a target of another":     {sent("POST", "/", "", signed("ssm", json11, "TrentService.DescribeKey"), nil), "ssm  awsjson1.1", "UnknownOperationException 400"},
		"no target":               {sent("POST", "/", "", signed("kms", json11, ""), nil), "kms  awsjson1.1", "UnknownOperationException 400"},
		"ecs":                     {sent("POST", "/", "", signed("ecs", json11, "AmazonEC2ContainerServiceV20141113.ListClusters"), nil), "ecs ListClusters awsjson1.1", "UnknownOperationException 404"},
		"ecr, refused":            {sent("POST", "/", "", signed("ecr", json11, "AmazonEC2ContainerRegistry_V20150921.PutLifecyclePolicy"), nil), "ecr PutLifecyclePolicy awsjson1.1", "UnsupportedOperationException 400"},
		"dynamodb":                {sent("POST", "/", "", signed("dynamodb", "application/x-amz-json-1.0", "DynamoDB_20120810.GetItem"), nil), "dynamodb GetItem awsjson1.0", "UnknownOperationException 404"},
		"cloudformation":          {sent("POST", "/", "", signed("cloudformation", form, ""), action("ListStacks", "2010-05-15")), "cloudformation ListStacks query", ""},
		"sns":                     {sent("POST", "/", "", signed("sns", form, ""), action("ListTopics", "2010-03-31")), "sns ListTopics query", "UnknownOperationException 404"},
		"s3":                      {sent("GET", "/bucket/key", "", signed("s3", "", ""), nil), "s3  restxml", "UnknownOperationException 404"},
		"efs":                     {sent("GET", "/2015-02-01/file-systems", "", signed("elasticfilesystem", "", ""), nil), "elasticfilesystem DescribeFileSystems restjson", ""},
		"efs, refused":            {sent("PUT", "/2015-02-01/file-systems/fs-1/policy", "", signed("elasticfilesystem", "", ""), nil), "elasticfilesystem PutFileSystemPolicy restjson", "BadRequest 400"},
		"a service with paths":    {sent("GET", "/2015-03-31/functions", "", signed("lambda", "", ""), nil), "lambda  restjson", "UnknownOperationException 404"},
		"unsigned, sts":           {sent("POST", "/", "", map[string][]string{"Content-Type": {form}}, action("AssumeRoleWithWebIdentity", "2011-06-15")), "sts AssumeRoleWithWebIdentity query", ""},
		"unsigned, kms":           {sent("POST", "/", "", map[string][]string{"Content-Type": {json11}, "X-Amz-Target": {"TrentService.Decrypt"}}, nil), "kms Decrypt awsjson1.1", "UnsupportedOperationException 400"},
		"unsigned, nobody's":      {sent("GET", "/clusters", "", nil, nil), "  restjson", "MissingAuthenticationToken 403"},
		"a browser":               {sent("GET", "/favicon.ico", "", map[string][]string{"Accept": {"*/*"}}, nil), "  restjson", "MissingAuthenticationToken 403"},
	} {
		t.Run(name, func(t *testing.T) {
			target := Find(c.request)
			if got := fmt.Sprintf("%s %s %s", target.Service, target.Action, target.Protocol); got != c.want {
				t.Errorf("target %q, want %q", got, c.want)
			}
			if unsigned := strings.HasPrefix(name, "unsigned") || name == "a browser"; target.Signed == unsigned {
				t.Errorf("signed: %v", target.Signed)
			}
			_, err := Decide(awsactions.NewList(), target)
			outcome := ""
			if fault := new(awsfault.Error); errors.As(err, &fault) {
				outcome = fmt.Sprint(fault.Code, " ", fault.HTTPStatus())
				if fault.HTTPStatus() >= 500 {
					t.Error("an SDK would ask again")
				}
			}
			if outcome != c.outcome {
				t.Errorf("outcome %q (%v), want %q", outcome, err, c.outcome)
			}
		})
	}
}

// The tables have the services and actions of the list, and every action is routed to itself.
func TestEveryActionIsRouted(t *testing.T) {
	here, list := services(), awsactions.NewList()
	seen := map[string]bool{}
	for _, s := range awsactions.Services() {
		wire, ok := here[s.Name]
		if !ok {
			t.Errorf("%s is on the list and has no table", s.Name)
			continue
		}
		seen[s.Name] = true
		for _, a := range s.Actions {
			r := sent("POST", "/", "", signed(s.Name, form, ""), []byte("Version="+wire.version+"&Action="+a.Name))
			if wire.target != "" {
				r.Header, r.Body = signed(s.Name, json11, wire.target+"."+a.Name), nil
			}
			if wire.table != nil {
				operation := wire.table.Operation(a.Name)
				if operation == nil {
					t.Errorf("%s:%s is on the list and not in the table", s.Name, a.Name)
					continue
				}
				if wire.protocol == awsshape.RestJSON {
					r.Method, r.Path = operation.Method, label.ReplaceAllString(operation.Path, "x")
				}
			}
			target := Find(r)
			if target.Service != s.Name || target.Action != a.Name || !target.Signed {
				t.Errorf("%s:%s is routed to %+v", s.Name, a.Name, target)
			}
			got, err := Decide(list, target)
			if want := a.Mark != awsactions.Refused && !list.NotYet(s.Name, a.Name); (err == nil) != want || want && got.Name != a.Name {
				t.Errorf("%s:%s: %+v, %v", s.Name, a.Name, got, err)
			}
			if a.Mark == awsactions.Refused && !strings.Contains(err.Error(), a.Reason) {
				t.Errorf("%s:%s: %v does not say why", s.Name, a.Name, err)
			}
		}
	}
	for name := range here {
		if !seen[name] {
			t.Errorf("%s has a table and is not on the list", name)
		}
	}
}

var label = regexp.MustCompile(`\{[^}]*\}`)

func TestAnswers(t *testing.T) {
	e := awsfault.Errorf("InvalidAction", `the action "<x>" & more`)
	for protocol, want := range map[awsshape.Protocol]string{
		awsshape.EC2Query: `text/xml; charset=utf-8 <Response><Errors><Error><Code>InvalidAction</Code><Message>the action &#34;&lt;x&gt;&#34; &amp; more</Message></Error></Errors><RequestID>r-1</RequestID></Response>`,
		awsshape.QueryXML: `text/xml; charset=utf-8 <ErrorResponse><Error><Type>Sender</Type><Code>InvalidAction</Code><Message>the action &#34;&lt;x&gt;&#34; &amp; more</Message></Error><RequestId>r-1</RequestId></ErrorResponse>`,
		restXML:           `text/xml; charset=utf-8 <Error><Code>InvalidAction</Code><Message>the action &#34;&lt;x&gt;&#34; &amp; more</Message><RequestId>r-1</RequestId></Error>`,
		awsshape.JSON10:   `application/x-amz-json-1.0 {"__type":"InvalidAction","message":"the action \"\u003cx\u003e\" \u0026 more"}`,
		awsshape.JSON11:   `application/x-amz-json-1.1 {"__type":"InvalidAction","message":"the action \"\u003cx\u003e\" \u0026 more"}`,
		awsshape.RestJSON: `application/json {"__type":"InvalidAction","message":"the action \"\u003cx\u003e\" \u0026 more"}`,
	} {
		a := Refuse(protocol, "r-1", e)
		if got := a.Header["Content-Type"] + " " + string(a.Body); got != want {
			t.Errorf("%s: %s\nwant %s", protocol, got, want)
		}
		if isJSON := a.Header["X-Amzn-Errortype"] == "InvalidAction"; isJSON != strings.HasPrefix(want, "application") || a.Status != 400 || a.Header["X-Amzn-Requestid"] != "r-1" {
			t.Errorf("%s: %+v", protocol, a)
		}
	}
	if a := Refuse(awsshape.QueryXML, "r", e.WithStatus(503)); !strings.Contains(string(a.Body), "<Type>Receiver</Type>") {
		t.Errorf("a server's fault: %s", a.Body)
	}
}

func FuzzFind(f *testing.F) {
	f.Add("POST", "/", presigned, "ec2", form, "", "Action=CreateVpc")
	f.Add("POST", "/", "", "ssm", json11, "AmazonSSM.GetParameter", "")
	f.Add("GET", "/clusters/%2F", "a=%zz", "eks", "", "", "")
	list := awsactions.NewList()
	f.Fuzz(func(t *testing.T, method, path, query, service, contentType, target, action string) {
		r := awsshape.Request{Method: method, Path: path, Query: query, Header: signed(service, contentType, target), Body: []byte(action)}
		found := Find(r)
		_, err := Decide(list, found)
		var fault *awsfault.Error
		if err != nil && (!errors.As(err, &fault) || fault.HTTPStatus() >= 500 || len(fault.Message) > 1000) {
			t.Errorf("%+v: %v", found, err)
		}
		if fault != nil {
			if a := Refuse(found.Protocol, "r", fault); len(a.Body) == 0 {
				t.Errorf("%+v: an empty answer", found)
			}
		}
	})
}

// The action that is routed is the one that a reader of the whole form takes.
func FuzzParameter(f *testing.F) {
	f.Add("Action=DescribeVpcs&Action=DeleteVpc")
	f.Add("%41ction=DeleteVpc&Action=DescribeVpcs")
	f.Add("Action=%zz&Action=x")
	f.Add("a;Action=x&Action=y;z&Action")
	f.Fuzz(func(t *testing.T, form string) {
		all, _ := url.ParseQuery(form)
		if got, want := first(form, "Action"), all.Get("Action"); got != want {
			t.Errorf("%q: %q, and the whole form has %q", form, got, want)
		}
	})
}
