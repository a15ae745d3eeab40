// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

func TestKeyPairs(t *testing.T) {
	const public = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIP4YQBfgXXKd/5iTYYmwvDG8FPqi7w/bbC0+hQ6+Q5ID"
	w := newWorld(t)
	material := "&PublicKeyMaterial=" + base64.StdEncoding.EncodeToString([]byte(public+" me@here\n"))
	w.ask("ImportKeyPair&KeyName=mine&DryRun=true"+material, 412, "DryRunOperation")
	imported := w.ask("ImportKeyPair&KeyName=mine&TagSpecification.1.ResourceType=key-pair&TagSpecification.1.Tag.1.Key=team&TagSpecification.1.Tag.1.Value=blue"+material, 200,
		"<keyName>mine</keyName>", "<keyFingerprint>GxY72oldkyEVr8i8k0SiaLRC7c2xWfDEUMAeqXEF9k8=</keyFingerprint>", "<key>team</key>")
	id := between(imported, "<keyPairId>", "</keyPairId>")
	w.ask("ImportKeyPair&KeyName=mine"+material, 400, "InvalidKeyPair.Duplicate", "The keypair 'mine' already exists.")
	w.ask("ImportKeyPair&KeyName=other&PublicKeyMaterial=YQ==", 400, "InvalidKey.Format", "not in valid OpenSSH public key format")
	w.ask("ImportKeyPair&KeyName=ä"+material, 400, "InvalidParameterValue")

	made := w.ask("CreateKeyPair&KeyName=made&KeyType=ed25519", 200, "<keyMaterial>-----BEGIN OPENSSH PRIVATE KEY-----", "<keyPairId>key-")
	w.ask("CreateKeyPair&KeyName=third", 200, "-----BEGIN RSA PRIVATE KEY-----")
	w.ask("CreateKeyPair&KeyName=fourth&KeyType=dsa", 400, "KeyType")
	w.ask("CreateKeyPair&KeyName=fourth&KeyFormat=ppk", 400, "KeyFormat")
	var kept v1alpha1.AWSRecordList
	if err := w.api.List(t.Context(), &kept); err != nil || len(kept.Items) != 3 {
		t.Fatalf("%d records, %v", len(kept.Items), err)
	}
	secret := strings.Split(between(made, "<keyMaterial>", "</keyMaterial>"), "\n")[2]
	for i := range kept.Items {
		if strings.Contains(string(kept.Items[i].Spec.Data.Raw), "PRIVATE") || strings.Contains(string(kept.Items[i].Spec.Data.Raw), secret) {
			t.Errorf("the private key is kept: %s", kept.Items[i].Spec.Data.Raw)
		}
	}

	text := w.ask("DescribeKeyPairs&KeyName.1=mine&IncludePublicKey=true", 200, "<keyPairId>"+id+"</keyPairId>", "<keyType>ed25519</keyType>", "<publicKey>"+public+" mine</publicKey>", "<createTime>")
	if strings.Contains(text, "<keyName>made") {
		t.Errorf("asked for one: %s", text)
	}
	if text := w.ask("DescribeKeyPairs&Filter.1.Name=tag:team&Filter.1.Value.1=blue", 200, id); strings.Contains(text, "publicKey") {
		t.Errorf("nobody asked for the key: %s", text)
	}
	w.ask("DescribeKeyPairs&KeyPairId.1="+id, 200, "<keyName>mine</keyName>")
	w.ask("DescribeKeyPairs&KeyName.1=none", 400, "<Code>InvalidKeyPair.NotFound</Code>", "The key pair 'none' does not exist")
	w.ask("DescribeKeyPairs&KeyPairId.1=key-0000000000000000f", 400, "InvalidKeyPair.NotFound")
	w.ask("CreateTags&ResourceId.1="+id+"&Tag.1.Key=a&Tag.1.Value=b", 200)
	w.ask("DescribeKeyPairs&KeyPairId.1="+id, 200, "<key>a</key><value>b</value>")
	w.wasAsked("ec2:ImportKeyPair arn:aws:ec2:eu-west-1:"+account+":key-pair/mine aws:requesttag/team=blue aws:tagkeys=team ec2:keypairname=mine ec2:keypairtype=ed25519",
		"ec2:CreateTags arn:aws:ec2:eu-west-1:"+account+":key-pair/mine")

	w.gate.Denies = true
	for _, request := range []string{"CreateKeyPair&KeyName=x", "ImportKeyPair&KeyName=x" + material, "DescribeKeyPairs", "DeleteKeyPair&KeyName=mine", "DeleteKeyPair&KeyName=none"} {
		w.ask(request, 403, "UnauthorizedOperation")
	}
	w.gate.Denies = false
	w.ask("DeleteKeyPair&KeyPairId="+url.QueryEscape(id)+"&DryRun=true", 412)
	w.ask("DeleteKeyPair&KeyPairId="+id, 200, "<return>true</return>", "<keyPairId>"+id+"</keyPairId>")
	w.ask("DeleteKeyPair&KeyName=mine", 200, "<return>true</return>")
	w.ask("DeleteKeyPair", 400, "MissingParameter")
}
