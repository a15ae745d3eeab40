// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

const (
	issuerHost  = "oidc.example.com/id/0123456789ABCDEF0123456789ABCDEF"
	providerARN = "arn:aws:iam::" + account + ":oidc-provider/" + issuerHost
	thumbprint  = "9e99a48a9960b14926bb7f3b02e22da2b0ab7280"
)

// The requests of Terraform's aws_iam_openid_connect_provider from creation to deletion.
func TestAProviderFromTerraform(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx, arn := w.iam(w.admin()), t.Context(), aws.String(providerARN)
	made := must[*iam.CreateOpenIDConnectProviderOutput](w)(c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{
		Url: aws.String("https://" + issuerHost), ClientIDList: []string{"sts.amazonaws.com", "sts.amazonaws.com"}, ThumbprintList: []string{thumbprint},
		Tags: []types.Tag{{Key: aws.String("Name"), Value: aws.String("blue")}},
	}))
	if *made.OpenIDConnectProviderArn != providerARN || len(made.Tags) != 1 {
		t.Errorf("%+v", made)
	}
	get := func() *iam.GetOpenIDConnectProviderOutput {
		t.Helper()
		return must[*iam.GetOpenIDConnectProviderOutput](w)(c.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn}))
	}
	if p := get(); *p.Url != issuerHost || !slices.Equal(p.ClientIDList, []string{"sts.amazonaws.com"}) || !slices.Equal(p.ThumbprintList, []string{thumbprint}) ||
		len(p.Tags) != 1 || *p.Tags[0].Value != "blue" || p.CreateDate == nil || p.CreateDate.IsZero() {
		t.Errorf("%+v", p)
	}
	if all := must[*iam.ListOpenIDConnectProvidersOutput](w)(c.ListOpenIDConnectProviders(ctx, nil)).OpenIDConnectProviderList; len(all) != 1 || *all[0].Arn != providerARN {
		t.Errorf("%+v", all)
	}

	for range 2 { // both may be repeated
		_, err := c.AddClientIDToOpenIDConnectProvider(ctx, &iam.AddClientIDToOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, ClientID: aws.String("other")})
		w.wants("another client", err, "")
	}
	for range 2 {
		_, err := c.RemoveClientIDFromOpenIDConnectProvider(ctx, &iam.RemoveClientIDFromOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, ClientID: aws.String("sts.amazonaws.com")})
		w.wants("a client less", err, "")
	}
	other := strings.Repeat("A", 40)
	_, err := c.UpdateOpenIDConnectProviderThumbprint(ctx, &iam.UpdateOpenIDConnectProviderThumbprintInput{OpenIDConnectProviderArn: arn, ThumbprintList: []string{other}})
	w.wants("another thumbprint", err, "")
	_, err = c.TagOpenIDConnectProvider(ctx, &iam.TagOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("red")}}})
	w.wants("another tag", err, "")
	_, err = c.UntagOpenIDConnectProvider(ctx, &iam.UntagOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, TagKeys: []string{"Name"}})
	w.wants("a tag less", err, "")
	if p := get(); !slices.Equal(p.ClientIDList, []string{"other"}) || !slices.Equal(p.ThumbprintList, []string{other}) || len(p.Tags) != 1 || *p.Tags[0].Key != "team" {
		t.Errorf("%+v", p)
	}
	if tags := must[*iam.ListOpenIDConnectProviderTagsOutput](w)(c.ListOpenIDConnectProviderTags(ctx, &iam.ListOpenIDConnectProviderTagsInput{OpenIDConnectProviderArn: arn})); len(tags.Tags) != 1 || tags.IsTruncated {
		t.Errorf("%+v", tags)
	}

	for range 2 { // also of a missing provider
		_, err = c.DeleteOpenIDConnectProvider(ctx, &iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn})
		w.wants("deleting it", err, "")
	}
	_, err = c.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn})
	w.wants("once it is deleted", err, "NoSuchEntity")
	if !strings.Contains(err.Error(), "OpenIDConnect Provider not found for arn "+providerARN) {
		t.Error(err)
	}
	_, err = c.UpdateOpenIDConnectProviderThumbprint(ctx, &iam.UpdateOpenIDConnectProviderThumbprintInput{OpenIDConnectProviderArn: arn, ThumbprintList: []string{other}})
	w.wants("changing it once it is deleted", err, "NoSuchEntity")
}

func TestProvidersThatCannotBe(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	create := func(url string, clients, thumbprints []string) error {
		_, err := c.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{Url: &url, ClientIDList: clients, ThumbprintList: thumbprints})
		return err
	}
	w.wants("the first", create("https://a.example.com/x", nil, nil), "")
	hundred := make([]string, 101)
	for i := range hundred {
		hundred[i] = "client-" + strconv.Itoa(i)
	}
	for what, tt := range map[string]struct {
		url                  string
		clients, thumbprints []string
		want                 string
	}{
		"the same":              {"https://a.example.com/x", nil, nil, "EntityAlreadyExists"},
		"the same with a port":  {"https://a.example.com:443/x", nil, nil, "EntityAlreadyExists"},
		"the same host":         {"https://A.EXAMPLE.com/x/", nil, nil, "EntityAlreadyExists"},
		"another path":          {"https://a.example.com/y", nil, nil, ""},
		"no scheme":             {"b.example.com", nil, nil, "ValidationError"},
		"http":                  {"http://b.example.com", nil, nil, "ValidationError"},
		"no host":               {"https:///x", nil, nil, "ValidationError"},
		"another port":          {"https://b.example.com:8443", nil, nil, "ValidationError"},
		"a query":               {"https://b.example.com?x=1", nil, nil, "ValidationError"},
		"a fragment":            {"https://b.example.com#x", nil, nil, "ValidationError"},
		"a user":                {"https://me@b.example.com", nil, nil, "ValidationError"},
		"a pattern":             {"https://b.example.com/*", nil, nil, "ValidationError"},
		"too long":              {"https://b.example.com/" + strings.Repeat("x", 255), nil, nil, "ValidationError"},
		"six thumbprints":       {"https://b.example.com", nil, slices.Repeat([]string{thumbprint}, 6), "InvalidInput"},
		"five":                  {"https://c.example.com", nil, slices.Repeat([]string{thumbprint}, 5), ""},
		"a short thumbprint":    {"https://b.example.com", nil, []string{"ab"}, "ValidationError"},
		"a thumbprint of words": {"https://b.example.com", nil, []string{strings.Repeat("z", 40)}, "ValidationError"},
		"101 clients":           {"https://b.example.com", hundred, nil, "LimitExceeded"},
		"100 clients":           {"https://d.example.com", hundred[:100], nil, ""},
		"a long client":         {"https://b.example.com", []string{strings.Repeat("x", 256)}, nil, "ValidationError"},
	} {
		w.wants(what, create(tt.url, tt.clients, tt.thumbprints), tt.want)
	}
	full := aws.String("arn:aws:iam::" + account + ":oidc-provider/d.example.com")
	_, err := c.AddClientIDToOpenIDConnectProvider(ctx, &iam.AddClientIDToOpenIDConnectProviderInput{OpenIDConnectProviderArn: full, ClientID: aws.String("one-more")})
	w.wants("client 101", err, "LimitExceeded")
	_, err = c.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: aws.String("arn:aws:iam::111122223333:oidc-provider/d.example.com")})
	w.wants("of another account", err, "NoSuchEntity")
	_, err = c.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: aws.String("d.example.com/of-no-account")})
	w.wants("no ARN", err, "ValidationError")
}

// Each action is asked about the provider, and about its tags.
func TestProvidersTakeRights(t *testing.T) {
	w := newWorld(t, nil)
	admin, alice, ctx, arn := w.iam(w.admin()), w.iam(w.user("alice")), t.Context(), aws.String(providerARN)
	must[*iam.CreateOpenIDConnectProviderOutput](w)(admin.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{
		Url: aws.String("https://" + issuerHost), Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("red")}},
	}))
	team := func(color string) {
		document := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:*OpenIDConnectProvider*","Resource":"` + providerARN + `","Condition":{"StringEquals":{"iam:ResourceTag/team":"` + color + `"}}}]}`
		must[*iam.PutUserPolicyOutput](w)(admin.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("p"), PolicyDocument: &document}))
	}
	tags := []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}
	actions := map[string]func() error{
		"Get": func() error {
			_, err := alice.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn})
			return err
		},
		"UpdateThumbprint": func() error {
			_, err := alice.UpdateOpenIDConnectProviderThumbprint(ctx, &iam.UpdateOpenIDConnectProviderThumbprintInput{OpenIDConnectProviderArn: arn, ThumbprintList: []string{thumbprint}})
			return err
		},
		"AddClientID": func() error {
			_, err := alice.AddClientIDToOpenIDConnectProvider(ctx, &iam.AddClientIDToOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, ClientID: aws.String("x")})
			return err
		},
		"RemoveClientID": func() error {
			_, err := alice.RemoveClientIDFromOpenIDConnectProvider(ctx, &iam.RemoveClientIDFromOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, ClientID: aws.String("x")})
			return err
		},
		"Tag": func() error {
			_, err := alice.TagOpenIDConnectProvider(ctx, &iam.TagOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, Tags: tags})
			return err
		},
		"Untag": func() error {
			_, err := alice.UntagOpenIDConnectProvider(ctx, &iam.UntagOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn, TagKeys: []string{"k"}})
			return err
		},
		"ListTags": func() error {
			_, err := alice.ListOpenIDConnectProviderTags(ctx, &iam.ListOpenIDConnectProviderTagsInput{OpenIDConnectProviderArn: arn})
			return err
		},
	}
	for _, color := range []string{"blue", "red"} {
		team(color)
		for what, do := range actions {
			w.wants(what+" with rights to "+color, do(), map[string]string{"blue": "AccessDenied", "red": ""}[color])
		}
	}
	_, err := alice.ListOpenIDConnectProviders(ctx, nil)
	w.wants("all of them", err, "AccessDenied")
	_, err = alice.CreateOpenIDConnectProvider(ctx, &iam.CreateOpenIDConnectProviderInput{Url: aws.String("https://new.example.com")})
	w.wants("a new one", err, "AccessDenied")
	team("blue")
	_, err = alice.DeleteOpenIDConnectProvider(ctx, &iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn})
	w.wants("deleting it", err, "AccessDenied")
	must[*iam.GetOpenIDConnectProviderOutput](w)(admin.GetOpenIDConnectProvider(ctx, &iam.GetOpenIDConnectProviderInput{OpenIDConnectProviderArn: arn}))
}
