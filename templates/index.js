const form = document.forms[0];
form.hidden = false;
form.onchange = () => {
  for (const row of document.querySelectorAll("tr[data-workloads]"))
    row.hidden = ["workloads", "hardware"].some((name) =>
      form[name].value && !row.dataset[name].split("|").includes(form[name].value));
};
