// Goes through the log of attempts page by page, oldest first. Nothing is left out and nothing comes twice,
// whatever is added meanwhile: the next page begins behind the last ObjectNo.
//
//	SVC_URL=http://localhost:8080 SVC_KEY=... go run page.go 'IsSuccess=false'
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

const first = "/Svc.Admin.WebhookLog/%s/limit=500"

type attempt struct {
	Time, Destination, Error string
	StatusCode               int
}

// page returns the target of the next one; empty: it was the last.
func page(target string, entries *[]attempt) (string, error) {
	request, err := http.NewRequest("GET", os.Getenv("SVC_URL")+target, nil)
	if err != nil {
		return "", err
	}
	if key := os.Getenv("SVC_KEY"); key != "" {
		request.Header.Set("Authorization", "apikey "+key)
	}
	client := http.Client{Timeout: 30 * time.Second}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return response.Header.Get("Svc-pager"), json.NewDecoder(response.Body).Decode(entries)
	case http.StatusNoContent: // none at all
		return "", nil
	}
	text, _ := io.ReadAll(response.Body)
	return "", fmt.Errorf("%s", text)
}

func main() {
	conditions := "_"
	if len(os.Args) > 1 {
		conditions = os.Args[1]
	}
	for target := fmt.Sprintf(first, conditions); target != ""; {
		var entries []attempt
		next, err := page(target, &entries)
		if err != nil {
			log.Fatal(err)
		}
		for _, a := range entries {
			fmt.Println(a.Time, a.Destination, a.StatusCode, a.Error)
		}
		target = next
	}
}
