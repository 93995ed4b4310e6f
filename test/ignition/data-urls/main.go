// Prints data-urls.json: which data URLs Ignition accepts as the source of a file, and their bytes.
//
//	go mod init cases && go get github.com/coreos/ignition/v2@v2.24.0 && go run . > data-urls.json
package main

import (
	"encoding/json"
	"os"
	"runtime/debug"

	ignition "github.com/coreos/ignition/v2/config/v3_5"
	"github.com/vincent-petithory/dataurl"
)

var sources = []string{
	"data:,", "data:", "data", "DATA:,a", "Data:,a", "data:,a", "data:a", "data:;,a", "data:,a,b",
	"data:,a%20b", "data:,a b", "data:,%", "data:,%4", "data:,%zz", "data:,%FF%00%c3%A9", "data:,é",
	"data:,a#b", "data:,a?b", "data:,a+b", "data:,a\nb", "data:,a\tb", "data:,[a]", "data:,{a}", "data:,a|b",
	"data:,a\"b", "data:,<a>", "data:,a\\b", "data:,a^b", "data:,a`b", "data:,~!*'()$&;:@=/-_.",
	"data:text/plain,a", "data:text,a", "data:text/,a", "data:/plain,a", "data:text/plain;,a", "data:text/plain ,a",
	"data:texts/plain,a", "data:TEXT/plain,a", "data:image/png,a", "data:application/json,a", "data:message/x,a",
	"data:multipart/x,a", "data:audio/x,a", "data:video/x,a", "data:font/woff,a", "data:x-a/b,a", "data:X-a/b,a",
	"data:xa/b,a", "data:text/a/b,a", "data:text/pl%20,a", "data:text/é,a",
	"data:;charset=utf-8,a", "data:;charset=,a", "data:;charset,a", "data:;=utf-8,a", "data:;a=%41,a", "data:;a=%4,a",
	"data:;a=b=c,a", "data:;a=b;c=d,a", "data:;a=\"b c\",a", "data:;a=\"b,c\",a", "data:;a=\"b\"c,a", "data:;a=\"b,a",
	"data:;a=\"\",a", "data:;a=\"\\\"\",a", "data:;a=\"\\q\",a", "data:;a=\"\\x41\",a", "data:;a=\"\\x4\",a",
	"data:;a=\"\\u00e9\",a", "data:;a=\"\\ud800\",a", "data:;a=\"\\101\",a", "data:;a=\"\\400\",a", "data:;a=\"\\'\",a",
	"data:;base64,", "data:;base64", "data:;base64,YQ==", "data:;base64,YQ=", "data:;base64,YQ", "data:;base64,YWI=",
	"data:;base64,YWJj", "data:;base64,YWJjZA==", "data:;base64,YR==", "data:;base64,YQ==YQ==", "data:;base64,Y===",
	"data:;base64,=", "data:;base64,====", "data:;base64,YQ%3D%3D", "data:;base64,Y Q==", "data:;base64,Y\nQ==",
	"data:;base64,-_8=", "data:;base64,+/8=", "data:;BASE64,YQ==", "data:;Base64,YQ==", "data:base64,YQ==",
	"data:;base64;a=b,YQ==", "data:;a=b;base64,YQ==", "data:;base64=1,YQ==", "data:;base64;base64,YQ==",
	"data:text/plain;charset=utf-8;base64,YQ==", "data:text/plain;base64;charset=utf-8,YQ==", "data:;base32,YQ==",
	"data: ;base64,YQ==", " data:,a", "data:,a ",
}

type row struct {
	Source string `json:"source"`
	// Of the bytes, in base64; null if Ignition refuses the config.
	Bytes *[]byte `json:"bytes"`
}

func main() {
	rows := []row{}
	for _, source := range sources {
		text, _ := json.Marshal(map[string]any{
			"ignition": map[string]any{"version": "3.5.0"},
			"storage": map[string]any{"files": []any{map[string]any{
				"path": "/a", "contents": map[string]any{"source": source}}}},
		})
		_, report, err := ignition.Parse(text)
		read, failure := dataurl.DecodeString(source)
		if err != nil || report.IsFatal() || failure != nil {
			rows = append(rows, row{source, nil})
			continue
		}
		rows = append(rows, row{source, &read.Data})
	}
	made := map[string]string{}
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == "github.com/coreos/ignition/v2" || module.Path == "github.com/vincent-petithory/dataurl" {
			made[module.Path] = module.Version
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	encoder.Encode(map[string]any{"madeWith": made, "rows": rows})
}
