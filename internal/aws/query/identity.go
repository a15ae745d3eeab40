// SPDX-License-Identifier: Apache-2.0

package query

import (
	"cmp"
	"encoding/json"
	"fmt"
	"mime"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/queryvalue"
)

// Identity is the protocol as STS and IAM speak it. The Version of a form says which of the two it is for. Nothing is
// ignored: to ignore a permissions boundary, say, would grant more than was asked for.
type Identity struct{ json bool }

var _ awsshape.Codec = Identity{}

// The codes of Identity beside those of Codec.
const (
	InvalidQueryParameter = "InvalidQueryParameter"
	MalformedQueryString  = "MalformedQueryString"
	RequestEntityTooLarge = "RequestEntityTooLarge"
)

// getAction is the one action that may come by GET, since presigned it is the token of an EKS cluster, and that answers
// JSON if the client wants it.
const getAction = "GetCallerIdentity"

// The limits of a form: room for the largest policy document that IAM lets through, and for every list.
const (
	maxParams = 500
	// maxDepth is half of the parts that a name may have: ContextEntries.member.1.ContextKeyValues.member.1 has six.
	maxDepth = 4
	maxValue = 160 << 10
)

// mayBeEmpty are required members whose value may be empty; all others may not.
var mayBeEmpty = []string{"Description", "Key", "TagKeys", "Tags", "Value"}

// toldFirst are the members that AWS tells first, in this order, of those that a request has not; the others come after
// them as in the table.
var toldFirst = []string{"InstanceProfileName", "OpenIDConnectProviderArn", "PolicySourceArn", "PolicyInputList", "RoleName", "UserName", "PolicyArn", "PolicyName", "PolicyDocument"}

// Route finds the service and the operation by the parameters Action and Version. The service is known in errors, too,
// once the form was read.
func (c Identity) Route(service *awsshape.Service, request awsshape.Request, limits awsshape.Limits) (awsshape.Call, error) {
	call := awsshape.Call{Service: service, Codec: c}
	text, err := identityForm(service, request)
	if err != nil {
		return call, err
	}
	limits.Params, limits.Value, limits.Depth = min(limits.Params, maxParams), min(limits.Value, maxValue), min(limits.Depth, maxDepth)
	form, err := queryvalue.Parse(text, limits, queryvalue.Codes{Malformed: MalformedQueryString, Value: ValidationError, Twice: InvalidQueryParameter, Strict: true})
	if err != nil {
		return call, err
	}
	if form.Action == "" {
		return call, awsfault.Errorf(MissingAction, "the parameter Action is missing")
	}
	found, err := versioned(service, form)
	if err != nil {
		return call, err
	}
	call.Service = found
	get := request.Method == awsshape.Get
	call.Codec = Identity{json: wantsJSON(request.Header) && (get || form.Action == getAction)}
	if get && form.Action != getAction {
		return call, awsfault.Errorf(InvalidAction, "the action %.100q cannot come by GET: send a POST with a form", form.Action)
	}
	op := found.Operation(form.Action)
	if op == nil {
		return call, awsfault.Errorf(InvalidAction, "muster has no action %.100q of %s %s", form.Action, found.Name, found.Version)
	}
	call.Operation, call.Input = op, func() (awsshape.Object, error) { return identityInput(op, form) }
	return call, nil
}

// identityForm is the form of a request, which must be for / and in one place.
func identityForm(service *awsshape.Service, r awsshape.Request) ([]byte, error) {
	switch {
	case r.Path != "/" && r.Path != "":
		return nil, awsfault.Errorf(InvalidAction, "the path is %.100q: the query protocol has only /", r.Path)
	case r.Method == awsshape.Get && int64(len(r.Query)) > service.MaxBody():
		return nil, awsfault.Errorf(RequestEntityTooLarge, "the query is larger than %d bytes", service.MaxBody()).WithStatus(413)
	case r.Method == awsshape.Get && len(r.Body) > 0:
		return nil, awsfault.Errorf(MalformedQueryString, "a GET has its parameters in the URL: it must have no body")
	case r.Method != awsshape.Get && r.Method != awsshape.Post:
		return nil, awsfault.Errorf(InvalidAction, "the method is %.20q: send a POST with a form", r.Method)
	case r.Method == awsshape.Post && (r.Query != "" || r.Asks):
		return nil, awsfault.Errorf(MalformedQueryString, "a POST has its parameters in the body: the URL must have no query")
	}
	if r.Method == awsshape.Post {
		if err := checkForm(r); err != nil {
			return nil, err
		}
	}
	text, _ := queryvalue.FormOf(r)
	return text, nil
}

// checkForm refuses a body that is something else than a plain form, and so a browser that was made to post text.
func checkForm(r awsshape.Request) error {
	const form = "application/x-www-form-urlencoded"
	kind, params, err := mime.ParseMediaType(r.Get("Content-Type"))
	charset, has := params["charset"]
	if err != nil || kind != form || has && !strings.EqualFold(charset, "utf-8") {
		return awsfault.Errorf(MalformedQueryString, "the Content-Type is %.100q: it must be "+form+", in UTF-8", r.Get("Content-Type"))
	}
	if encoding := r.Get("Content-Encoding"); encoding != "" {
		return awsfault.Errorf(MalformedQueryString, "the Content-Encoding is %.100q: send the form as it is", encoding)
	}
	return nil
}

// versioned is the service of a form's Version: one of the endpoint's, or the one that the endpoint is.
func versioned(endpoint *awsshape.Service, form *queryvalue.Form) (*awsshape.Service, error) {
	services := endpoint.Versions
	if len(services) == 0 {
		services = []*awsshape.Service{endpoint}
	}
	known := make([]string, 0, len(services))
	for i, s := range services {
		if s.Version == form.Version {
			return s, nil
		}
		verb := " "
		if i == 0 {
			verb = " version is "
		}
		known = append(known, strings.ToUpper(s.Name)+"'s"+verb+s.Version)
	}
	return nil, awsfault.Errorf(InvalidAction, "there is no action %.100q of version %.100q: %s", form.Action, form.Version, strings.Join(known, " and "))
}

// identityInput decodes the parameters of an operation, and refuses parameters that the operation does not have.
func identityInput(op *awsshape.Operation, form *queryvalue.Form) (awsshape.Object, error) {
	object, unknown, err := form.Read(op.Input)
	if err != nil {
		return nil, err
	}
	if op.Input != nil {
		for _, m := range op.Input.Members {
			if m.Required && empty(object[m.Name]) && !slices.Contains(mayBeEmpty, m.Name) {
				return nil, awsfault.Errorf(ValidationError, "the parameter %s is empty", m.In)
			}
		}
		if missing := op.Input.Missing(object); len(missing) > 0 {
			slices.SortStableFunc(missing, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
			return nil, awsfault.Nulls(ValidationError, inMembers(missing))
		}
	}
	if len(unknown) > 0 {
		return nil, Unknown(unknown[0])
	}
	return object, nil
}

// Unknown refuses a parameter that an action of STS or IAM would ignore.
func Unknown(parameter string) *awsfault.Error {
	return awsfault.Errorf(ValidationError, "the parameter %q is not one that this action takes here; muster refuses what it would have to ignore "+
		"(lists count from 1 without a gap)", parameter)
}

func empty(value any) bool {
	items, list := value.([]any)
	return value == "" || list && len(items) == 0
}

func rank(member string) int {
	if i := slices.Index(toldFirst, member); i >= 0 {
		return i
	}
	return len(toldFirst)
}

// inMembers has paths of members as AWS has them: Tags.1.Key is tags.1.member.key there.
func inMembers(paths []string) []string {
	for i, path := range paths {
		var parts []string
		for part := range strings.SplitSeq(path, ".") {
			if parts = append(parts, part); strings.Trim(part, "0123456789") == "" {
				parts = append(parts, "member")
			}
		}
		paths[i] = strings.Join(parts, ".")
	}
	return paths
}

func wantsJSON(header map[string][]string) bool {
	for _, line := range header["Accept"] {
		for part := range strings.SplitSeq(line, ",") {
			if kind, _, err := mime.ParseMediaType(part); err == nil && kind == "application/json" {
				return true
			}
		}
	}
	return false
}

type metadata struct {
	RequestID string `json:"RequestId"`
}

// Encode writes the output with all its members, in the order of its fields. An action that returns nothing has no
// element for a result.
func (c Identity) Encode(op *awsshape.Operation, requestID string, output any) (awsshape.Response, error) {
	if c.json {
		inner := map[string]any{"ResponseMetadata": metadata{requestID}}
		if output != nil {
			inner[op.Name+"Result"] = output
		}
		body, err := json.Marshal(map[string]any{op.Name + "Response": inner})
		return awsshape.Response{Status: 200, Header: c.headers(requestID), Body: body}, err
	}
	body := append(make([]byte, 0, 1024), `<`+op.Name+`Response xmlns="`+op.Service.Namespace+`">`...)
	if output != nil {
		body = append(body, "<"+op.Name+"Result>"...)
		if op.Output != nil {
			var err error
			if body, err = queryvalue.AppendWhole(body, op.Output, awsshape.ValueOf(output)); err != nil {
				return awsshape.Response{}, fmt.Errorf("writing the result of %s: %w", op.Name, err)
			}
		}
		body = append(body, "</"+op.Name+"Result>"...)
	}
	body = append(body, "<ResponseMetadata>"...)
	body = queryvalue.ElementWhole(body, "RequestId", requestID)
	body = append(body, "</ResponseMetadata></"+op.Name+"Response>"...)
	return awsshape.Response{Status: 200, Header: c.headers(requestID), Body: body}, nil
}

// EncodeError writes a refusal. The namespace is that of the service, or of the endpoint where a request named no
// service.
func (c Identity) EncodeError(service *awsshape.Service, requestID string, problem *awsfault.Error) awsshape.Response {
	status := service.Status(problem)
	answer := awsshape.Response{Status: status, Header: c.headers(requestID)}
	fault := struct{ Type, Code, Message string }{"Sender", problem.Code, problem.Message}
	if status >= 500 { // SDKs are told whose fault it was
		fault.Type = "Receiver"
	}
	if c.json {
		answer.Body, _ = json.Marshal(struct { // texts alone
			Error any
			metadata
		}{fault, metadata{requestID}})
		return answer
	}
	body := []byte(`<ErrorResponse xmlns="` + service.Namespace + `"><Error>`)
	body = queryvalue.ElementWhole(body, "Type", fault.Type)
	body = queryvalue.ElementWhole(body, "Code", fault.Code)
	body = queryvalue.ElementWhole(body, "Message", fault.Message)
	body = append(body, "</Error>"...)
	body = queryvalue.ElementWhole(body, "RequestId", requestID)
	body = append(body, "</ErrorResponse>"...)
	answer.Body = body
	return answer
}

// headers are those of each answer. Answers hold credentials, so that nobody may keep them.
func (c Identity) headers(requestID string) map[string]string {
	kind := "text/xml; charset=utf-8"
	if c.json {
		kind = "application/json"
	}
	return map[string]string{"Content-Type": kind, "X-Amzn-Requestid": requestID, "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
}
